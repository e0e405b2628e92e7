"""What the tensor parallel exercises share: seeded inputs, equal slices, and reading an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from course.grading.comparison import difference
from course.grading.exercise import Mistake, Outcome
from course.grading.plain_data import plain
from labkit.plan.shard import partition_columns

Returns = Callable[[int], Any]


def normal(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """float64 tensors of these shapes, standard normal; the same seed gives the same values."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes)


def slices(size: int, ranks: int) -> tuple[slice, ...]:
    """`size` indices in equal contiguous slices, rank by rank.

    Raises:
        PartitionError (a ValueError): `size` does not divide by `ranks`.
    """
    return tuple(slice(part.start, part.stop) for part in partition_columns(size, ranks))


def held_by(rank: int, whole: Tensor, own: tuple[slice, ...]) -> Tensor:
    """`whole` with its true values only at `own`; the rest is garbage, another on each rank."""
    (held,) = normal(1000 + rank, tuple(whole.shape))
    held[own] = whole[own]
    return held


def on_every_rank(value: Any) -> Returns:
    """A function that returned `value` whatever the rank."""
    return lambda rank: value


def mistakes(
    messages: Mapping[str, str],
    returned: Iterable[tuple[str, Returns]],
    shown: Iterable[tuple[str, Callable[[Outcome], bool]]] = (),
) -> tuple[Mistake, ...]:
    """One Mistake for each (key, what it returns) and (key, what shows it), in this order.

    A key may come more than once: several ways to write the same mistake.
    """
    return (
        *(Mistake(key, messages[key], returns=returns) for key, returns in returned),
        *(Mistake(key, messages[key], shows=shows) for key, shows in shown),
    )


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
