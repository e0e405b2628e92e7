"""The bars the decode benchmark is held to, and whether a result clears them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.rows import Row, find, speedup
from benchmarks.sides import DTENSOR, OURS, TRANSFORMERS, TRANSFORMERS_TP

DTYPES = ("float32", "bfloat16")
BATCHES = (1, 8, 32)

ONE_RANK_BAR, ONE_RANK_GOAL = 1.15, 1.5
NEVER_SLOWER_BAR = 1.0
TRANSFORMERS_TP_BAR = 1.1
DTENSOR_BAR = 3.0


@dataclass(frozen=True)
class Bar:
    """`value` times as fast as the peer, where `bar` was asked for; None: it was not measured."""

    name: str
    value: float | None
    bar: float
    goal: float | None = None

    @property
    def ok(self) -> bool:
        """Cleared. What was not measured was not cleared."""
        return self.value is not None and self.value >= self.bar

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `goal_met` only where there is a goal above the bar."""
        fields = asdict(self) | {"ok": self.ok}
        if self.goal is None:
            del fields["goal"]
        else:
            fields["goal_met"] = self.value is not None and self.value >= self.goal
        return fields

    def __str__(self) -> str:
        value = "not measured" if self.value is None else f"{self.value:.2f}x"
        verdict = "ok" if self.ok else "MISSED"
        goal = "" if self.goal is None else f", goal {self.goal:g}x"
        return f"{verdict:7} {self.name}: {value} (bar {self.bar:g}x{goal})"


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Every bar, in the order they were set."""
    return [bar for dtype in DTYPES for batch in BATCHES for bar in _bars_at(rows, dtype, batch)]


def _bars_at(rows: Sequence[Row], dtype: str, batch: int) -> list[Bar]:
    at = f"{dtype}, batch {batch}"
    bar, goal = (ONE_RANK_BAR, ONE_RANK_GOAL) if batch == 1 else (NEVER_SLOWER_BAR, None)
    found = []
    for threads, title in ((1, "one thread"), (2, "two threads")):
        ours = find(rows, OURS, dtype, batch, threads=threads)
        theirs = find(rows, TRANSFORMERS, dtype, batch, threads=threads)
        name = f"one rank against transformers, {title}, {at}"
        found.append(Bar(name, speedup(ours, theirs), bar, goal))
    ours = find(rows, OURS, dtype, batch, ranks=3)
    for peer, peer_bar in ((TRANSFORMERS_TP, TRANSFORMERS_TP_BAR), (DTENSOR, DTENSOR_BAR)):
        theirs = find(rows, peer, dtype, batch, ranks=3)
        name = f"three ranks against {peer}, {at}"
        found.append(Bar(name, speedup(ours, theirs), peer_bar))
    return found
