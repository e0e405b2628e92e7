"""Cost models made of other cost models: two levels of links, and a host that cannot keep up."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.plan.cost_model import CostModel, Terms, require


@dataclass(frozen=True)
class Hierarchical(CostModel):
    """All-reduce in groups of `inner_size` ranks (a node) and between them (the network).

    Reduce-scatter inside, all-reduce of each part across the groups, all-gather inside. `inner` is
    the all-reduce that those two halves make up, such as a `Ring` or a `TwoShot`. `outer` runs over
    n / inner_size ranks, on 1 / inner_size of the bytes. Up to `inner_size` ranks are one group.

    Raises ValueError where n is above `inner_size` and no multiple of it.
    """

    inner: CostModel
    outer: CostModel
    inner_size: int

    def __post_init__(self) -> None:
        require("inner_size", self.inner_size, self.inner_size >= 1, "at least 1")

    def groups(self, n: int) -> int:
        """How many groups `n` ranks make."""
        if n <= self.inner_size:
            return 1
        if n % self.inner_size:
            below = n // self.inner_size * self.inner_size
            raise ValueError(
                f"{n} ranks do not make whole groups of {self.inner_size}; "
                f"legal nearby: {below}, {below + self.inner_size}"
            )
        return n // self.inner_size

    def _terms(self, n: int, payload_bytes: float) -> Terms:
        groups, inside = self.groups(n), min(n, self.inner_size)
        inner = self.inner.terms(inside, payload_bytes)
        outer = self.outer.terms(groups, payload_bytes / inside)
        return Terms(
            inner.latency_seconds + outer.latency_seconds,
            inner.transfer_seconds + outer.transfer_seconds,
        )

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        groups, inside = self.groups(n), min(n, self.inner_size)
        between = self.outer.wire_bytes(groups, payload_bytes / inside)
        return self.inner.wire_bytes(inside, payload_bytes) + between

    def _steps(self, n: int) -> int:
        groups = self.groups(n)
        return self.inner.steps(min(n, self.inner_size)) + self.outer.steps(groups)

    def _messages(self, n: int) -> int:
        groups = self.groups(n)
        return self.inner.messages(min(n, self.inner_size)) + self.outer.messages(groups)


@dataclass(frozen=True)
class LaunchBound(CostModel):
    """A collective that the host starts one by one (eager, no CUDA graph).

    launch: seconds between two starts. A shorter collective waits for the next start, so that is
    what a series of them takes each; a longer one hides it: max(launch, model's seconds).
    """

    launch: float
    model: CostModel

    def __post_init__(self) -> None:
        require("launch", self.launch, self.launch >= 0, "at least 0 seconds")

    def _terms(self, n: int, payload_bytes: float) -> Terms:
        inside = self.model.terms(n, payload_bytes)
        waiting = max(inside.latency_seconds, self.launch - inside.transfer_seconds)
        return Terms(waiting, inside.transfer_seconds)

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return self.model.wire_bytes(n, payload_bytes)

    def _steps(self, n: int) -> int:
        return self.model.steps(n)

    def _messages(self, n: int) -> int:
        return self.model.messages(n)
