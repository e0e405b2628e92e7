"""Signs of a mistake that several exercises look for in an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from course.grading.comparison import difference
from course.grading.exercise import Outcome

Shows = Callable[[Outcome], bool]


def right_on_one_rank_only(expected: Any, tolerance: float = 1e-9) -> Shows:
    """Of several ranks just one returned `expected`."""

    def shows(outcome: Outcome) -> bool:
        differences = [difference(expected, value, tolerance) for value in outcome.returned]
        return len(differences) > 1 and differences.count(None) == 1

    return shows


def passes_as_many_bytes(own_bytes: Iterable[int]) -> Shows:
    """Some operation of a rank took as many bytes as that rank's own share (or more).

    own_bytes: of each rank. One rank alone sends nothing, whatever it calls.
    """
    limits = tuple(own_bytes)

    def shows(outcome: Outcome) -> bool:
        return len(limits) > 1 and any(
            event.payload_bytes >= limit > 0
            for trace, limit in zip(outcome.traces, limits, strict=False)
            for event in trace
        )

    return shows
