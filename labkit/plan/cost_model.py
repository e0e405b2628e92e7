"""What every cost model of a collective answers: seconds, bytes, steps, messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Terms:
    """The two parts of a collective's time, in seconds."""

    latency_seconds: float
    transfer_seconds: float

    @property
    def seconds(self) -> float:
        """Both parts."""
        return self.latency_seconds + self.transfer_seconds


class CostModel(ABC):
    """One algorithm's cost. Sizes are bytes, times seconds, bandwidths bytes per second.

    Every method raises ValueError for fewer than one rank or fewer than no bytes.
    """

    def seconds(self, n: int, payload_bytes: float) -> float:
        """Seconds of one collective over `n` ranks."""
        return self.terms(n, payload_bytes).seconds

    def terms(self, n: int, payload_bytes: float) -> Terms:
        """Latency and transfer, apart."""
        require_size(n, payload_bytes)
        return Terms(0.0, 0.0) if n == 1 else self._terms(n, payload_bytes)

    def wire_bytes(self, n: int, payload_bytes: float) -> float:
        """Bytes that the busiest rank sends."""
        require_size(n, payload_bytes)
        return 0.0 if n == 1 else self._wire_bytes(n, payload_bytes)

    def steps(self, n: int) -> int:
        """Rounds that wait for one another; what runs at the same time is one round."""
        require_size(n)
        return 0 if n == 1 else self._steps(n)

    def messages(self, n: int) -> int:
        """Messages that the busiest rank sends."""
        require_size(n)
        return 0 if n == 1 else self._messages(n)

    @abstractmethod
    def _terms(self, n: int, payload_bytes: float) -> Terms: ...

    @abstractmethod
    def _wire_bytes(self, n: int, payload_bytes: float) -> float: ...

    @abstractmethod
    def _steps(self, n: int) -> int: ...

    def _messages(self, n: int) -> int:
        return self._steps(n)


def require_size(n: int, payload_bytes: float = 0.0) -> None:
    """Raise ValueError for fewer than one rank or fewer than no bytes."""
    require("the number of ranks", n, n >= 1, "at least 1")
    require("payload_bytes", payload_bytes, payload_bytes >= 0, "at least 0")


def require_link(*, bandwidth: float, **latencies: float) -> None:
    """Raise ValueError for a bandwidth that is not positive or a latency below 0, by its name."""
    require("bandwidth", bandwidth, bandwidth > 0, "above 0 bytes per second")
    for name, seconds in latencies.items():
        require(name, seconds, seconds >= 0, "at least 0 seconds")


def require(what: str, value: float, holds: bool, rule: str) -> None:
    """Raise ValueError, with what was given and the rule, unless it holds."""
    if not holds:
        raise ValueError(f"{what} is {value}; it must be {rule}")
