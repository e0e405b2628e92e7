"""How much a benchmark run measures, and how long it may take."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.bars import DTYPES
from benchmarks.sides import ALL_SIDES, QUICK_SIDES, Side

COMMAND_START = time.monotonic()
"""Taken before anything slow is imported, so that limits hold for the whole command."""


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    sides: tuple[Side, ...]
    dtypes: tuple[str, ...]
    new_tokens: dict[int, int]
    """Tokens per prompt, by batch size: fewer where a step takes longer."""
    rounds: int
    slow_rounds: int
    tries_variants: bool
    deadline: float
    """Seconds that one answer may take."""
    budget: float
    """Seconds after which no further round starts."""
    limit: float
    """Seconds after which nothing is waited for any more."""
    prompt_tokens: int = 16


FULL = Plan(
    sides=ALL_SIDES,
    dtypes=DTYPES,
    new_tokens={1: 33, 8: 17, 32: 9},
    rounds=3,
    slow_rounds=2,
    tries_variants=True,
    deadline=180.0,
    budget=1500.0,
    limit=1800.0,
)
QUICK = Plan(
    sides=QUICK_SIDES,
    dtypes=("float32",),
    new_tokens={1: 6},
    rounds=3,
    slow_rounds=1,
    tries_variants=False,
    deadline=35.0,
    budget=26.0,
    limit=39.0,
)


class Clock:
    """How much of a plan's time is left."""

    def __init__(self, plan: Plan, start: float) -> None:
        self._plan = plan
        self._start = start

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def is_over_budget(self) -> bool:
        """No further round starts."""
        return self.elapsed > self._plan.budget

    @property
    def deadline(self) -> float:
        """Seconds the next answer may take."""
        return max(min(self._plan.deadline, self._plan.limit - self.elapsed), 0.0)
