"""What a collective costs that several groups make at once: they wait for the slowest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labkit.plan.pair_placement import REFERENCE_BYTES

if TYPE_CHECKING:
    from labkit.plan.collective_presets import CollectivePreset
    from labkit.plan.collectives import AllToAll, CostModel
    from labkit.plan.replica_shape import Block
    from labkit.plan.topology import Topology


def slowest_collective(
    topology: Topology, groups: Sequence[Block], preset: CollectivePreset | None = None
) -> CostModel:
    """`Topology.collective` of the slowest group."""
    models = [topology.collective(group, preset) for group in unlike(topology, groups)]
    return max(models, key=lambda model: model.seconds(len(groups[0]), REFERENCE_BYTES))


def slowest_all_to_all(topology: Topology, groups: Sequence[Block]) -> AllToAll:
    """`Topology.all_to_all` of the slowest group."""
    models = [topology.all_to_all(group) for group in unlike(topology, groups)]
    return max(models, key=lambda model: model.seconds(len(groups[0]), REFERENCE_BYTES))


def unlike(topology: Topology, groups: Sequence[Block]) -> Sequence[Block]:
    """Of groups that lie alike on the nodes the first, for without `pairs` they cost alike; all
    where there are `pairs`."""
    if topology.pairs or len(groups) == 1:
        return groups
    kinds: dict[tuple[int, ...], Block] = {}
    for group in groups:
        nodes = [topology.node_numbers[gpu] for gpu in group]
        places = {node: place for place, node in enumerate(dict.fromkeys(nodes))}
        kind = tuple([places[node] for node in nodes]) if len(places) > 1 else ()
        kinds.setdefault(kind, group)
    return tuple(kinds.values())
