"""A topology whose GPUs are numbered by the links they have, whatever they were called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from labkit.plan.canonical_order import canonical_order, form

if TYPE_CHECKING:
    from labkit.plan.hardware import LinkSpec
    from labkit.plan.topology import Topology


def canonical_topology(topology: Topology) -> Topology:
    """The same links, the larger nodes first and of these the faster."""
    inside = topology.inside
    pairs = {pair: spec for pair, spec in topology.pairs.items() if spec != inside}
    if pairs:
        nodes = _by_links(topology, sorted({inside, *pairs.values()}, key=repr))
    else:
        nodes = sorted(topology.nodes, key=len, reverse=True)
    labels = {gpu: label for label, gpu in enumerate(chain.from_iterable(nodes))}
    renamed = {frozenset(labels[gpu] for gpu in pair): spec for pair, spec in pairs.items()}
    grouped = tuple(tuple(labels[gpu] for gpu in node) for node in nodes)
    return replace(topology, pairs=renamed, nodes=grouped)


def _by_links(topology: Topology, specs: Sequence[LinkSpec]) -> list[tuple[int, ...]]:
    """The nodes in an order, and the GPUs of each in an order, that no number decides."""
    colours = {spec: number for number, spec in enumerate(specs)}
    paired = {pair: colours[spec] for pair, spec in topology.pairs.items()}
    inside = colours[topology.inside]

    def colour(a: int, b: int) -> int:
        return paired.get(frozenset((a, b)), inside)

    nodes = [canonical_order(node, colour) for node in topology.nodes]
    nodes.sort(key=lambda node: (-len(node), topology.ring_seconds(node), form(node, colour)))
    return nodes
