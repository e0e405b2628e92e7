"""How many GPUs would hold a model that does not fit on those that were asked about."""

from __future__ import annotations

from dataclasses import replace

from labkit.plan.fitting_layout import FittingLayout, fit_layout
from labkit.plan.layout_space import layouts
from labkit.plan.question import MOST_GPUS, Question
from labkit.plan.topology import Topology


def enough_gpus(question: Question) -> tuple[int, FittingLayout] | None:
    """The question's GPUs doubled until a layout fits, and that layout.

    Of several one whose TP groups lie inside nodes, with the fewest stages and the most room. None
    where no such number that a search covers is enough. Memory alone is looked at: it has room for
    the weights and the question's requests.
    """
    gpus = 2 * question.gpus
    while gpus <= MOST_GPUS:
        wider = replace(question, gpus=gpus, topology=_widened(question.links, gpus))
        node = wider.links.gpus_per_node
        judged = (fit_layout(wider, layout) for layout in layouts(question.model, gpus, node))
        fitting = [
            found
            for found in judged
            if isinstance(found, FittingLayout)
            and found.layout.dp * found.room(question.length) >= (question.batch or 1)
        ]
        if fitting:
            return gpus, min(fitting, key=lambda found: _oddness(found, node, question.length))
        gpus *= 2
    return None


def _oddness(found: FittingLayout, node: int, length: int) -> tuple[bool, int, int]:
    return found.layout.tp > node, found.layout.pp, -found.room(length)


def _widened(topology: Topology, gpus: int) -> Topology:
    """More nodes of the same kind, at least as many GPUs as `gpus`."""
    if topology.gpus >= gpus:
        return topology
    return Topology(gpus, topology.gpus_per_node, topology.inside, topology.between)
