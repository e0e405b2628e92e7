"""Which GPUs the replicas of a layout get, all of them at the same time and each GPU once.

A replica stays inside a node while it fits. One that does not is made of its parts: stages, then
copies of attention, then TP groups stay inside nodes while they fit, and consecutive ones make a
replica.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING

from labkit.plan.node_placement import Cost, NodeLinks, node_blocks
from labkit.plan.replica_shape import Block, ReplicaShape
from labkit.plan.slowest_group import unlike

if TYPE_CHECKING:
    from labkit.plan.layout import Layout
    from labkit.plan.topology import Topology


def placed_replicas(
    topology: Topology, layout: Layout, *, tp_inside: bool = True
) -> tuple[ReplicaShape, tuple[Block, ...]]:
    """The shape of a replica of the layout, and the GPUs of each replica; of those that lie alike
    on nodes without `pairs`, one.

    Raises ValueError for a layout of more GPUs than there are.
    """
    if layout.world_size > topology.gpus:
        raise ValueError(
            f"the layout takes {layout.world_size} GPUs and the topology has {topology.gpus}; "
            f"{topology.gpus // layout.replica_size} replicas of {layout.replica_size} would fit"
        )
    shape = ReplicaShape(layout.tp, layout.dp, layout.pp, tp_inside)
    blocks = placed(topology, shape, layout.replicas)
    return shape, tuple(unlike(topology, blocks))


def placed(topology: Topology, shape: ReplicaShape, count: int) -> list[Block]:
    """`count` replicas of a shape, for which there is room: those in nodes, the larger nodes first,
    and then those that span nodes."""
    nodes = sorted(topology.nodes, key=len, reverse=True)
    return _placed(topology, nodes, shape, count)


def _placed(
    topology: Topology, nodes: Sequence[Block], shape: ReplicaShape, count: int
) -> list[Block]:
    blocks: list[Block] = []
    spare: list[Block] = []
    if shape.size == 1:
        blocks.extend((gpu,) for gpu in chain.from_iterable(nodes))
        return blocks[:count]
    for node, number in zip(nodes, _shares(topology, nodes, shape, count), strict=True):
        if not number:
            spare.append(node)
            continue
        found = _in_node(topology, node, shape, number)[1]
        blocks.extend(found)
        used = set(chain.from_iterable(found))
        if len(used) < len(node):
            spare.append(tuple(gpu for gpu in node if gpu not in used))
    missing = count - len(blocks)
    if missing:
        each = shape.parts
        parts = _placed(topology, spare, shape.inner, missing * each)
        blocks.extend(
            tuple(chain.from_iterable(parts[start : start + each]))
            for start in range(0, len(parts), each)
        )
    return blocks


def _shares(
    topology: Topology, nodes: Sequence[Block], shape: ReplicaShape, count: int
) -> list[int]:
    """How many of `count` replicas each node gets: one after the other goes where the slowest of
    the node's is fastest then."""
    room = [len(node) // shape.size for node in nodes]
    shares = [0] * len(nodes)
    if not topology.pairs:
        for index, most in enumerate(room):
            shares[index] = min(most, count)
            count -= shares[index]
        return shares
    offers: list[tuple[Cost, int]] = []

    def offer(index: int) -> None:
        if shares[index] < room[index]:
            cost, _ = _in_node(topology, nodes[index], shape, shares[index] + 1)
            heappush(offers, (cost, index))

    for index in range(len(nodes)):
        offer(index)
    while offers and sum(shares) < count:
        _, index = heappop(offers)
        shares[index] += 1
        offer(index)
    return shares


def _in_node(
    topology: Topology, node: Block, shape: ReplicaShape, count: int
) -> tuple[Cost, tuple[Block, ...]]:
    """`count` replicas on the GPUs of one node, and what the slowest costs."""
    size = shape.size
    if not topology.pairs:
        return (), tuple(node[start : start + size] for start in range(0, count * size, size))
    places = {gpu: place for place, gpu in enumerate(node)}
    pairs = frozenset(
        (frozenset(places[gpu] for gpu in pair), spec)
        for pair, spec in topology.pairs_by_node[topology.node_of(node[0])].items()
        if pair <= places.keys()
    )
    links = NodeLinks(len(node), topology.inside, pairs)
    cost, blocks = node_blocks(links, shape, count)
    return cost, tuple(tuple(node[place] for place in block) for block in blocks)
