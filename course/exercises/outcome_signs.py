"""Signs of a mistake that several exercises look for in an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from course.grading.comparison import difference
from course.grading.exercise import Outcome
from course.grading.plain_data import plain

Returns = Callable[[int], Any]
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


def all_have_shape(outcome: Outcome, shape: Iterable[int]) -> bool:
    """Whether every rank returned a tensor of this shape."""
    wanted = torch.Size(shape)
    return bool(outcome.returned) and all(
        isinstance(value, Tensor) and value.shape == wanted for value in outcome.returned
    )


def all_returned(outcome: Outcome, *made: Returns) -> bool:
    """Whether every rank returned what one of `made` gives it, up to rounding."""
    ranks = range(len(outcome.returned))
    return bool(ranks) and any(
        all(difference(plain(value(r)), outcome.returned[r], 1e-9) is None for r in ranks)
        for value in made
    )


def count(outcome: Outcome, op: str | None = None) -> int:
    """How many operations called `op` (None: of any kind) the ranks made, the most of any rank."""
    return max((trace.count(op) for trace in outcome.traces), default=0)


def passed_shapes(outcome: Outcome, op: str) -> set[tuple[int, ...]]:
    """The shapes of the tensors that any rank passed to `op`."""
    return {event.shape for trace in outcome.traces for event in trace if event.op == op}


def passed_sizes(outcome: Outcome, op: str) -> set[int]:
    """How many elements the tensors had that any rank passed to `op`, in whatever shape."""
    return {math.prod(shape) for shape in passed_shapes(outcome, op)}


def reduced_to(wrong: Sequence[Tensor]) -> Callable[[Outcome], bool]:
    """Whether more than one all-reduce led every rank to one of these tensors."""

    def shows(outcome: Outcome) -> bool:
        return count(outcome, "all_reduce") > 1 and any(
            all(difference(plain(value), found, 1e-9) is None for found in outcome.returned)
            for value in wrong
        )

    return shows
