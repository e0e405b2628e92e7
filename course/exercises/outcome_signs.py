"""Signs of a mistake that several exercises look for in an outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from course.grading.comparison import difference
from course.grading.exercise import Outcome

Shows = Callable[[Outcome], bool]

FEW = 4
"""So many numbers a row may travel in one message of a vocabulary-parallel function."""


def right_on_one_rank_only(expected: Any, tolerance: float = 1e-9) -> Shows:
    """Of several ranks just one returned `expected`."""

    def shows(outcome: Outcome) -> bool:
        differences = [difference(expected, value, tolerance) for value in outcome.returned]
        return len(differences) > 1 and differences.count(None) == 1

    return shows


def sends_its_logits(parts: Sequence[Tensor]) -> Shows:
    """A rank passed as many bytes to one operation as its own `[B, W]` of `parts` has, or more.

    Parts of FEW columns or fewer tell nothing, and one rank alone sends nothing.
    """
    limits = [part.nbytes if part.shape[1] > FEW else None for part in parts]

    def shows(outcome: Outcome) -> bool:
        return len(limits) > 1 and any(
            limit is not None and event.payload_bytes >= limit
            for trace, limit in zip(outcome.traces, limits, strict=False)
            for event in trace
        )

    return shows
