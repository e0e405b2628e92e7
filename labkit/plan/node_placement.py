"""Replicas, or parts of them, on the GPUs of one node that are not all joined alike.

TP groups get the fastest links, then the ranks of a stage, then the hops between stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from labkit.plan.collectives import Ring
from labkit.plan.hardware import LinkSpec
from labkit.plan.pair_placement import (
    MOST_SEARCHED,
    REFERENCE_BYTES,
    bottleneck,
    fastest_groups,
)
from labkit.plan.replica_shape import Block, ReplicaShape
from labkit.plan.stage_chain import chained

Cost = tuple[float, ...]
"""Seconds of the slowest TP group, of the slowest link in a stage, and of the slowest hop."""


@dataclass(frozen=True)
class NodeLinks:
    """GPUs 0 to `gpus` - 1 of one node; `pairs` have another link than `inside`."""

    gpus: int
    inside: LinkSpec
    pairs: frozenset[tuple[frozenset[int], LinkSpec]] = frozenset()


@lru_cache(maxsize=2048)
def node_blocks(
    links: NodeLinks, shape: ReplicaShape, count: int
) -> tuple[Cost, tuple[Block, ...]]:
    """`count` blocks of a shape, the slowest as fast as can be, and what the slowest costs."""
    node, every = _arranger(links), tuple(range(links.gpus))
    if not links.pairs:
        alike = tuple(every[n * shape.size :][: shape.size] for n in range(count))
        return node.cost(alike[0], shape), alike
    if len(every) > MOST_SEARCHED:
        blocks = node.one_by_one(every, shape, count)
        return max(node.cost(block, shape) for block in blocks), tuple(blocks)
    groups = fastest_groups(every, shape.size, lambda group: node.arranged(group, shape)[0], count)
    found = [node.arranged(group, shape) for group in groups]
    return max(cost for cost, _ in found), tuple(block for _, block in found)


class _Arranger:
    """One node's links; what was arranged is kept."""

    def __init__(self, links: NodeLinks) -> None:
        self._pairs = dict(links.pairs)
        self._inside = links.inside
        paired = frozenset[int]().union(*self._pairs)
        self._plain = frozenset(range(links.gpus)) - paired
        self._kept: dict[tuple[Block, ReplicaShape], tuple[Cost, Block]] = {}
        self._one_by_one: dict[int, list[Block]] = {}

    def arranged(self, gpus: Sequence[int], shape: ReplicaShape) -> tuple[Cost, Block]:
        """One block of a shape on these GPUs, and its cost."""
        key = (tuple(gpus), shape)
        if key not in self._kept:
            block = self._arrange(key[0], shape)
            self._kept[key] = (self.cost(block, shape), block)
        return self._kept[key]

    def _arrange(self, gpus: Block, shape: ReplicaShape) -> Block:
        inner = shape.inner
        if not inner.outermost:
            return self._joined([(gpu,) for gpu in gpus], shape)
        parts = fastest_groups(gpus, inner.size, lambda part: self.arranged(part, inner)[0])
        return self._joined([self.arranged(part, inner)[1] for part in parts], shape)

    def _joined(self, parts: Sequence[Block], shape: ReplicaShape) -> Block:
        if shape.outermost == "pp" and len(parts) <= MOST_SEARCHED:
            stages = [tuple(map(tuple, shape.inner.tp_groups(part))) for part in parts]
            return tuple(
                gpu for stage in chained(stages, self.seconds) for group in stage for gpu in group
            )
        return tuple(gpu for part in parts for gpu in part)

    def one_by_one(self, gpus: Block, shape: ReplicaShape, count: int) -> list[Block]:
        """For a node too large to compare all placements: the innermost groups where links are
        fastest, of which fewer are the first of many, then parts of them as they come.

        gpus: all of the node.
        """
        inner = shape.inner
        if not inner.outermost:
            if shape.size not in self._one_by_one:
                found = fastest_groups(gpus, shape.size, self.ring_seconds, alike=self._plain)
                self._one_by_one[shape.size] = found
            groups = self._one_by_one[shape.size][:count]
            return [self._joined([(gpu,) for gpu in group], shape) for group in groups]
        parts = self.one_by_one(gpus, inner, count * shape.parts)
        return [
            self._joined(parts[start : start + shape.parts], shape)
            for start in range(0, len(parts), shape.parts)
        ]

    def cost(self, block: Block, shape: ReplicaShape) -> Cost:
        rings = (self.ring_seconds(group) for group in shape.tp_groups(block))
        inside = (
            self.seconds(*pair)
            for stage in shape.stages(block)
            for pair in combinations(stage, 2)
            if shape.dp > 1
        )
        hops = (self.seconds(*hop) for hop in shape.hops(block))
        return tuple(max(seconds, default=0.0) for seconds in (rings, inside, hops))

    def ring_seconds(self, group: Sequence[int]) -> float:
        if len(group) == 1:
            return 0.0
        spec = bottleneck(group, self._link)
        return Ring(spec.hop_latency, spec.bandwidth).seconds(len(group), REFERENCE_BYTES)

    def seconds(self, a: int, b: int) -> float:
        spec = self._link(a, b)
        return spec.hop_latency + REFERENCE_BYTES / spec.bandwidth

    def _link(self, a: int, b: int) -> LinkSpec:
        return self._pairs.get(frozenset((a, b)), self._inside)


@lru_cache(maxsize=64)
def _arranger(links: NodeLinks) -> _Arranger:
    return _Arranger(links)
