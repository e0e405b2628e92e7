"""What the tensor parallel exercises share: seeded inputs, equal slices, lists of mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from course.grading.exercise import Mistake, Outcome
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
    """One Mistake for each (text, what it returns) and (text, what shows it), in this order.

    A text is a name in `messages`; up to a colon, if it has one, it is the key: "cut: too long" and
    "cut: too short" have a message each. It may come more than once: several ways to write it.
    """
    return (
        *(Mistake(_key(text), messages[text], returns=returns) for text, returns in returned),
        *(Mistake(_key(text), messages[text], shows=shows) for text, shows in shown),
    )


def _key(text: str) -> str:
    return text.partition(":")[0]
