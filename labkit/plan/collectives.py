"""What a collective costs on n ranks: bytes that a rank sends, steps, and seconds (modelled).

Every model adds a latency, which does not depend on the size, and a transfer, which grows with it:

    seconds = latency(n)  +  wire bytes / bandwidth

Small messages pay for the latency, large ones for the bytes. A ring all-reduce of S bytes is a
reduce-scatter and then an all-gather; each takes n-1 hops, and in each hop a rank sends S/n bytes:

    wire bytes of a rank = 2 (n-1)/n * S
    seconds              = 2 (n-1) * hop latency  +  wire bytes / bandwidth

`payload_bytes` is the whole buffer: what an all-reduce, a reduce-scatter or an all-to-all takes on
each rank, and what an all-gather leaves there. One rank alone pays nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from labkit.plan.composed_collectives import Hierarchical, LaunchBound
from labkit.plan.cost_model import CostModel, Terms, require_link, require_size

__all__ = [
    "AllToAll",
    "CostModel",
    "Hierarchical",
    "LaunchBound",
    "OneOrTwoShot",
    "OneShot",
    "RecursiveDoubling",
    "Ring",
    "RingAllGather",
    "RingReduceScatter",
    "Terms",
    "Tree",
    "TwoShot",
    "ring_all_reduce_seconds",
    "ring_latency_seconds",
    "ring_wire_bytes",
]


@dataclass(frozen=True)
class _Hops(CostModel):
    """Steps that wait for one another, each with its latency.

    hop_latency: seconds of a step. bandwidth: bytes per second that a rank can send.
    launch: seconds before the first step, whatever the number of ranks (a kernel's start).
    """

    hop_latency: float
    bandwidth: float
    launch: float = 0.0

    def __post_init__(self) -> None:
        require_link(hop_latency=self.hop_latency, launch=self.launch, bandwidth=self.bandwidth)

    def _terms(self, n: int, payload_bytes: float) -> Terms:
        latency = self.launch + self._steps(n) * self.hop_latency
        return Terms(latency, self._serial_bytes(n, payload_bytes) / self.bandwidth)

    def _serial_bytes(self, n: int, payload_bytes: float) -> float:
        """Bytes that follow one another on the slowest path."""
        return self._wire_bytes(n, payload_bytes)


@dataclass(frozen=True)
class Ring(_Hops):
    """Ring all-reduce: 2 (n-1) hops of S/n bytes."""

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return 2 * (n - 1) * payload_bytes / n

    def _steps(self, n: int) -> int:
        return 2 * (n - 1)


@dataclass(frozen=True)
class _HalfRing(_Hops):
    """n-1 hops of S/n bytes."""

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return (n - 1) * payload_bytes / n

    def _steps(self, n: int) -> int:
        return n - 1


@dataclass(frozen=True)
class RingReduceScatter(_HalfRing):
    """The first half of a ring all-reduce: each rank brings S bytes and keeps its n-th part."""


@dataclass(frozen=True)
class RingAllGather(_HalfRing):
    """The second half of a ring all-reduce: each rank brings S/n bytes and ends with all S."""


@dataclass(frozen=True)
class RecursiveDoubling(_Hops):
    """All-reduce in log2(n) exchanges of S bytes with a partner ever twice as far away.

    Beyond a power of two, each extra rank first gives its S bytes to a partner and gets the sum
    back at the end: two more steps, and one more message of that partner.
    """

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return self._messages(n) * payload_bytes

    def _serial_bytes(self, n: int, payload_bytes: float) -> float:
        return self._steps(n) * payload_bytes

    def _steps(self, n: int) -> int:
        return _floor_log2(n) + 2 * (not _is_power_of_two(n))

    def _messages(self, n: int) -> int:
        return _floor_log2(n) + (not _is_power_of_two(n))


@dataclass(frozen=True)
class Tree(_Hops):
    """All-reduce up a binomial tree and down again: 2 ceil(log2 n) steps of S bytes."""

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return self._messages(n) * payload_bytes

    def _serial_bytes(self, n: int, payload_bytes: float) -> float:
        return self._steps(n) * payload_bytes

    def _steps(self, n: int) -> int:
        return 2 * (n - 1).bit_length()

    def _messages(self, n: int) -> int:
        return (n - 1).bit_length()


@dataclass(frozen=True)
class AllToAll(CostModel):
    """All-to-all: a message of S/n bytes to each of n-1 peers.

    peer_latency: seconds for each peer. launch: seconds before the first, whatever n.
    """

    peer_latency: float
    bandwidth: float
    launch: float = 0.0

    def __post_init__(self) -> None:
        require_link(peer_latency=self.peer_latency, launch=self.launch, bandwidth=self.bandwidth)

    def _terms(self, n: int, payload_bytes: float) -> Terms:
        latency = self.launch + (n - 1) * self.peer_latency
        return Terms(latency, self._wire_bytes(n, payload_bytes) / self.bandwidth)

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return (n - 1) * payload_bytes / n

    def _steps(self, n: int) -> int:
        return n - 1


@dataclass(frozen=True)
class _Shots(CostModel):
    """latency: seconds of all steps, flat in n. bandwidth: bytes per second out of a rank."""

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        require_link(latency=self.latency, bandwidth=self.bandwidth)

    def _terms(self, n: int, payload_bytes: float) -> Terms:
        return Terms(self.latency, self._wire_bytes(n, payload_bytes) / self.bandwidth)

    def _messages(self, n: int) -> int:
        return self._steps(n) * (n - 1)


@dataclass(frozen=True)
class OneShot(_Shots):
    """All-reduce in one step: every rank gets all S bytes of all others, and adds them itself."""

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return (n - 1) * payload_bytes

    def _steps(self, n: int) -> int:
        return 1


@dataclass(frozen=True)
class TwoShot(_Shots):
    """All-reduce in two steps: each rank adds up its n-th part, then sends it to all others."""

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return 2 * (n - 1) * payload_bytes / n

    def _steps(self, n: int) -> int:
        return 2


@dataclass(frozen=True)
class OneOrTwoShot(CostModel):
    """Whichever of one-shot and two-shot is the cheaper for the size: small ones in one shot.

    `steps(n)` and `messages(n)` are those of a message without bytes.
    """

    one_shot: OneShot
    two_shot: TwoShot

    def choice(self, n: int, payload_bytes: float) -> OneShot | TwoShot:
        """The cheaper one; one-shot where they cost the same."""
        one, two = self.one_shot, self.two_shot
        return one if one.seconds(n, payload_bytes) <= two.seconds(n, payload_bytes) else two

    def crossing_bytes(self, n: int) -> float:
        """The payload from which two-shot is the cheaper.

        0 where it always is, infinity where it is not for large messages.
        """
        require_size(n)
        per_byte = self.one_shot.wire_bytes(n, 1) / self.one_shot.bandwidth
        saved_per_byte = per_byte - self.two_shot.wire_bytes(n, 1) / self.two_shot.bandwidth
        if saved_per_byte <= 0:
            return math.inf
        return max(0.0, (self.two_shot.latency - self.one_shot.latency) / saved_per_byte)

    def _terms(self, n: int, payload_bytes: float) -> Terms:
        return self.choice(n, payload_bytes).terms(n, payload_bytes)

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return self.choice(n, payload_bytes).wire_bytes(n, payload_bytes)

    def _steps(self, n: int) -> int:
        return self.choice(n, 0).steps(n)

    def _messages(self, n: int) -> int:
        return self.choice(n, 0).messages(n)


def ring_wire_bytes(payload_bytes: float, n: int) -> float:
    """Bytes each of `n` ranks sends in a ring all-reduce of `payload_bytes`; 0 for one rank.

    Raises ValueError for fewer than one rank or fewer than no bytes.
    """
    return Ring(0.0, 1.0).wire_bytes(n, payload_bytes)


def ring_latency_seconds(n: int, *, hop_latency: float) -> float:
    """The part of an all-reduce that no bandwidth shortens: 2 (n-1) hops of `hop_latency` s."""
    return Ring(hop_latency, 1.0).terms(n, 0).latency_seconds


def ring_all_reduce_seconds(
    payload_bytes: float, n: int, *, bandwidth: float, hop_latency: float = 0.0
) -> float:
    """Seconds of one all-reduce of `payload_bytes` over `n` ranks; 0 for one rank.

    `bandwidth`: bytes per second that a rank can send. `hop_latency`: seconds of one hop.

    Raises ValueError for a bandwidth that is not positive, or for what the terms refuse.
    """
    return Ring(hop_latency, bandwidth).seconds(n, payload_bytes)


def _floor_log2(n: int) -> int:
    return n.bit_length() - 1


def _is_power_of_two(n: int) -> bool:
    return n & (n - 1) == 0
