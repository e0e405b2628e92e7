"""How the GPUs of one replica are ordered, and which of them make groups, stages and hops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Block = tuple[int, ...]
"""The GPUs of a replica in the order of its ranks."""


@dataclass(frozen=True)
class ReplicaShape:
    """TP x DP x PP ranks.

    Attributes:
        tp_inside: TP groups are neighbours, then copies of attention, then stages. If not, the
            stages are, then TP groups, then copies.
    """

    tp: int = 1
    dp: int = 1
    pp: int = 1
    tp_inside: bool = True

    @cached_property
    def size(self) -> int:
        """GPUs of a replica."""
        return self.tp * self.dp * self.pp

    @cached_property
    def outermost(self) -> str:
        """The axis whose ranks are farthest apart, of those with more than one; "" for one GPU."""
        axes = ("pp", "dp", "tp") if self.tp_inside else ("dp", "tp", "pp")
        return next((axis for axis in axes if getattr(self, axis) > 1), "")

    @cached_property
    def inner(self) -> ReplicaShape:
        """One part of the outermost axis."""
        kept = {axis: getattr(self, axis) for axis in ("tp", "dp", "pp") if axis != self.outermost}
        return ReplicaShape(**kept, tp_inside=self.tp_inside)

    @property
    def parts(self) -> int:
        """Inner parts of a replica."""
        return self.size // self.inner.size

    def tp_groups(self, block: Block) -> Iterator[Block]:
        """The TP group of each copy and stage."""
        step = 1 if self.tp_inside else self.pp
        span = self.tp * step
        for start in range(0, len(block), span):
            for first in range(start, start + step):
                yield block[first : start + span : step]

    def stages(self, block: Block) -> Iterator[Block]:
        """The ranks of each stage, which its experts are dealt over."""
        span = self.tp * self.dp
        if self.tp_inside:
            return (block[start : start + span] for start in range(0, len(block), span))
        return (block[stage :: self.pp] for stage in range(self.pp))

    def hops(self, block: Block) -> Iterator[tuple[int, int]]:
        """Each GPU with the one of the next stage that it sends to."""
        step = self.tp * self.dp if self.tp_inside else 1
        for place, gpu in enumerate(block[:-step]):
            if place // step % self.pp < self.pp - 1:
                yield gpu, block[place + step]
