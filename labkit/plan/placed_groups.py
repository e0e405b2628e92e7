"""Which GPUs the groups of a layout get: those of all replicas and stages, each GPU once.

A layout needs many groups at the same time, and not all of them may have the fast links: a step is
as slow as the slowest of them. Groups that are spread or that span nodes count no `pairs`: which of
their GPUs a bridge joins depends on numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labkit.plan.hardware import LinkSpec
from labkit.plan.layout import Layout
from labkit.plan.topology import Topology

Groups = Sequence[tuple[int, ...]]


def require_room(topology: Topology, layout: Layout) -> None:
    """Raises ValueError for a layout of more GPUs than there are."""
    if layout.world_size > topology.gpus:
        raise ValueError(
            f"the layout takes {layout.world_size} GPUs and the topology has {topology.gpus}; "
            f"{topology.gpus // layout.replica_size} replicas of {layout.replica_size} would fit"
        )


def tp_groups(topology: Topology, layout: Layout) -> Groups:
    """The TP groups, of neighbours."""
    return topology.best_groups(layout.tp)[: layout.replicas * layout.pp * layout.dp]


def spread_tp_groups(topology: Topology, layout: Layout) -> Groups:
    """The TP groups where the stages of a pipeline are neighbours instead."""
    blocks = topology.without_pairs.best_groups(layout.tp * layout.pp)
    return [
        block[stage :: layout.pp]
        for block in blocks[: layout.replicas * layout.dp]
        for stage in range(layout.pp)
    ]


def stage_groups(topology: Topology, layout: Layout) -> Groups:
    """The ranks of each stage, which its experts are dealt over."""
    return topology.best_groups(layout.stage_size)[: layout.replicas * layout.pp]


def slowest_stage_link(topology: Topology, layout: Layout, *, tp_inside: bool = True) -> LinkSpec:
    """The slowest link that hidden states cross from one pipeline stage to the next."""
    step = layout.stage_size if tp_inside else 1
    if topology.pairs and step == 1:
        chains = topology.best_groups(layout.pp)[: layout.replicas * layout.stage_size]
        links = {topology.slowest_link(chain) for chain in chains}
    else:
        plain = topology.without_pairs
        blocks = plain.best_groups(layout.replica_size)[: layout.replicas]
        links = {plain.link(*pair) for block in blocks for pair in _borders(block, layout, step)}
    return min(links, key=lambda link: (link.bandwidth, -link.hop_latency))


def _borders(block: Sequence[int], layout: Layout, step: int) -> Iterator[tuple[int, int]]:
    """Each GPU of a replica with the one of the next stage that it sends to."""
    for place, gpu in enumerate(block[:-step]):
        if place // step % layout.pp < layout.pp - 1:
            yield gpu, block[place + step]
