"""What to know before believing a search, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from labkit.plan.candidates import Candidate
from labkit.plan.layout import Layout
from labkit.plan.question import Question
from labkit.plan.shard import counted
from labkit.plan.step_system import IDEAL, Fidelity


def notes(question: Question) -> tuple[str, ...]:
    """Which links groups lie on, and what the times leave out."""
    return (*_links(question), *_times(question), *question.model.notes)


def split_sentence(best: Candidate | None, fitting: Sequence[Layout]) -> str:
    """Whether the best layout splits a replica further than memory asks, and what it gets for it.

    best: None where nothing serves. fitting: every layout that fits memory.
    """
    if not fitting:
        return "No replica fits on these GPUs."
    least = min(layout.replica_size for layout in fitting)
    smallest = f"The smallest replica that fits has {counted(least, 'GPU')}"
    if best is None:
        return f"{smallest}, and none serves."
    size = best.layout.replica_size
    if size == least:
        return f"{smallest}, and no larger one is better: replicas first."
    return (
        f"{smallest}; one of {counted(size, 'GPU')} pays for what it sends with a shorter step, "
        "room in the KV cache or a larger batch under the limits."
    )


def _links(question: Question) -> list[str]:
    links = question.links
    inside = f"{links.inside.title} at {links.inside.bandwidth / 1e9:g} GB/s"
    if question.gpus <= links.gpus_per_node:
        return [f"All {question.gpus} GPUs are in one node, joined by {inside}."]
    between = f"{links.between.title} at {links.between.bandwidth / 1e9:g} GB/s a GPU"
    return [
        f"{links.gpus_per_node} GPUs of a node are joined by {inside}, nodes by {between}: "
        "all-reduces come twice a layer, so TP groups lie inside a node while they fit; pipeline "
        "stages, which send once a step, and replicas, which send nothing, cross nodes."
    ]


def _times(question: Question) -> list[str]:
    found = []
    if question.fidelity is Fidelity.TEXTBOOK:
        found.append(
            "The textbook's step: reading all weights and two all-reduces a layer; no KV cache is "
            "read, nothing is computed, and there is no prefill."
        )
    elif question.efficiency == IDEAL:
        found.append(
            "Times assume the data sheet reached in full, which no engine does: calibrate on "
            "measured rows before you trust more than the order of layouts."
        )
    if question.collectives is None and question.fidelity is Fidelity.FULL:
        found.append(
            "All-reduces are textbook rings on these links; recorded ones take less at the sizes "
            "of a decode step, so more TP pays than it seems here."
        )
    if question.model.is_moe and question.fidelity is Fidelity.FULL:
        found.append(
            f"Experts are taken to be used evenly up to a balancedness of "
            f"{question.efficiency.balancedness:g}, which is {question.efficiency.label}."
        )
    computes = question.device.compute_note(_narrowest(question))
    if computes and question.fidelity is Fidelity.FULL:
        found.append(f"{computes}.")
    return found


def _narrowest(question: Question) -> str:
    """The narrowest type that products of the model are meant to run in."""
    products = {matrix.format.products for matrix, _ in question.model.matrices}
    for name in ("fp4", "int4", "fp8", "int8"):
        if name in products:
            return name
    return question.model.dtype
