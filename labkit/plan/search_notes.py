"""What to know before believing a search, in sentences."""

from __future__ import annotations

from labkit.plan.question import Question
from labkit.plan.step_system import IDEAL, Fidelity


def notes(question: Question) -> tuple[str, ...]:
    """Which links groups lie on, and what the times leave out."""
    return (*_links(question), *_times(question), *question.model.notes)


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
    formats = {matrix.format.name for matrix, _ in question.model.matrices}
    for name in ("nvfp4", "fp8", "int8"):
        if name in formats:
            return name
    return question.model.dtype
