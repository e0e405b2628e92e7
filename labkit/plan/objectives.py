"""What a layout is chosen for, and the limits it must keep: an objective and an SLO.

Without an objective no layout is the best one. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from labkit.plan.hardware import require_positive
from labkit.plan.quantity_text import duration


class Objective(Enum):
    """What a search ranks layouts by; the value is its name on a command line."""

    LATENCY = "latency"
    """The time of one request, from its arrival to its last token."""
    THROUGHPUT_PER_GPU = "throughput"
    """Output tokens per second for each GPU."""
    KV_CAPACITY = "kv-capacity"
    """Tokens that all KV caches hold."""
    COST = "cost"
    """Price of a million output tokens."""

    @property
    def sentence(self) -> str:
        """What is best under it, for a reader."""
        return _SENTENCES[self]

    @property
    def needs_limits(self) -> bool:
        """Whether the batch decides it, so that without an SLO the largest batch always wins."""
        return self in (Objective.THROUGHPUT_PER_GPU, Objective.COST)


_SENTENCES = {
    Objective.LATENCY: "the shortest time from a request's arrival to its last token",
    Objective.THROUGHPUT_PER_GPU: "the most output tokens per second for each GPU",
    Objective.KV_CAPACITY: "the most tokens in all KV caches together",
    Objective.COST: "the lowest price of a million output tokens",
}


@dataclass(frozen=True)
class SLO:
    """Limits on what a client waits for, in seconds; None sets no limit.

    Attributes:
        ttft: time to first token, without queueing.
        tpot: time per output token after the first.

    Raises ValueError for a limit that is not a finite number above 0.
    """

    ttft: float | None = None
    tpot: float | None = None

    def __post_init__(self) -> None:
        for name in ("ttft", "tpot"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name), "seconds")

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for."""
        return self.ttft is None and self.tpot is None

    def is_met(self, ttft: float | None, tpot: float) -> bool:
        """Whether both limits are kept; a TTFT that is not known breaks its limit."""
        if self.tpot is not None and tpot > self.tpot:
            return False
        return self.ttft is None or (ttft is not None and ttft <= self.ttft)

    def misses(self, ttft: float | None, tpot: float) -> tuple[str, ...]:
        """A clause for each limit that is broken."""
        found = []
        if self.tpot is not None and tpot > self.tpot:
            found.append(f"TPOT {duration(tpot)} is above the limit of {duration(self.tpot)}")
        if self.ttft is not None and ttft is not None and ttft > self.ttft:
            found.append(f"TTFT {duration(ttft)} is above the limit of {duration(self.ttft)}")
        return tuple(found)

    def __str__(self) -> str:
        limits = (("TTFT", self.ttft), ("TPOT", self.tpot))
        said = [f"{name} at most {duration(s)}" for name, s in limits if s is not None]
        return " and ".join(said) or "no limit"


NO_LIMIT = SLO()
