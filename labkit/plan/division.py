"""Dividing numbers over ranks: equal parts, balanced parts, padding, whole groups, refusals.

Part of the partition arithmetic; import it from `labkit.plan.shard`, where the rest is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

_MOST_LISTED = 12


class PartitionError(ValueError):
    """A division that cannot be done.

    Attributes:
        reasons: one clause for each rule that is broken.
        legal: the degrees that break none of them.
    """

    def __init__(self, reasons: Iterable[str], legal: Iterable[int] = (), note: str = "") -> None:
        self.reasons = tuple(reasons)
        self.legal = tuple(legal)
        self.note = note
        super().__init__("; ".join(self.reasons) + self._advice())

    def _advice(self) -> str:
        if not self.legal:
            return ""
        shown = ", ".join(str(degree) for degree in self.legal[:_MOST_LISTED])
        if len(self.legal) > _MOST_LISTED:
            shown += f", ... {self.legal[-1]}"
        return f"; legal here: {shown}" + (f" ({self.note})" if self.note else "")

    def __reduce__(self) -> tuple[type[PartitionError], tuple[object, ...]]:
        return type(self), (self.reasons, self.legal, self.note)


def counted(count: int, noun: str) -> str:
    """`1 KV head`, `2 KV heads`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def divisors(size: int) -> tuple[int, ...]:
    """The divisors of `size`, rising."""
    small = [d for d in range(1, math.isqrt(size) + 1) if size % d == 0]
    return tuple(sorted({*small, *(size // d for d in small)}))


def pad_up(size: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is at least `size`."""
    if multiple < 1:
        raise PartitionError([f"cannot pad to a multiple of {multiple}; it must be at least 1"])
    return -(-size // multiple) * multiple


def even_range(
    size: int, parts: int, rank: int, what: str = "size", over: str | None = None
) -> range:
    """The indices of part `rank` when `size` is cut into `parts` equal parts.

    Raises:
        PartitionError: `size` does not divide by `parts`; `what` and `over` name the two in the
            message.
        IndexError: there is no part `rank`.
    """
    require_degree(parts, "TP")
    if size % parts:
        over = over or f"TP {parts}"
        raise PartitionError([f"{what} {size} does not divide over {over}"], divisors(size))
    require_rank(rank, parts)
    width = size // parts
    return range(rank * width, (rank + 1) * width)


def partition_columns(size: int, tp: int, what: str = "size") -> tuple[range, ...]:
    """`size` columns in `tp` equal ranges, rank by rank.

    Raises:
        PartitionError: `size` does not divide by `tp`.
    """
    return tuple(even_range(size, tp, rank, what) for rank in range(max(tp, 1)))


def cuts_a_group(borders: Iterable[int], group: int) -> bool:
    """Whether one of the borders lies inside a group: features that share a scale or a word."""
    return any(border % group for border in borders)


def pad_to_whole_groups(size: int, parts: int, group: int) -> int:
    """The smallest size not below `size` that gives each of `parts` ranks whole groups."""
    return pad_up(size, parts * group)


def deals_whole_groups(size: int, parts: int, group: int) -> bool:
    """Whether every part gets one when groups are dealt out whole, the last part padded."""
    groups = -(-size // group)
    return (parts - 1) * -(-groups // parts) < groups


def balanced_range(size: int, parts: int, rank: int) -> range:
    """Part `rank` of `size` indices in `parts` parts that differ by at most one, longer first."""
    require_degree(parts, "the number of parts")
    require_rank(rank, parts)
    base, longer = divmod(size, parts)
    start = rank * base + min(rank, longer)
    return range(start, start + base + (rank < longer))


def balanced_ranges(size: int, parts: int) -> tuple[range, ...]:
    """`size` indices in `parts` ranges whose lengths differ by at most one, longer ones first."""
    return tuple(balanced_range(size, parts, rank) for rank in range(max(parts, 1)))


def require_degree(parts: int, what: str) -> None:
    """Raise PartitionError for a degree below 1."""
    if parts < 1:
        raise PartitionError([f"{what} must be at least 1, not {parts}"])


def require_rank(rank: int, parts: int) -> None:
    """Raise IndexError for a rank outside a group of `parts`."""
    if not 0 <= rank < parts:
        raise IndexError(f"rank {rank} is outside a group of {parts}")
