"""Tables and pictures of lesson 03 about steps: their terms, and what links make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course.labels import Label, quantity
from course.picture import Picture, stacked_bars
from course.table import Table
from labkit.plan.collective_presets import TEXTBOOK_NVLINK, TEXTBOOK_PCIE
from labkit.plan.decode_sketch import sketch
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.steptime import StepTime, System, decode_step

MEETINGS = ("all-reduce latency", "all-reduce transfer")
READING = ("weights", "KV cache")


def some(step: StepTime, names: Sequence[str]) -> float:
    """Seconds of some terms together."""
    return sum(step.terms[name] for name in names)


def degrees_table(
    model: ModelSpec,
    system: System,
    degrees: Sequence[int],
    batches: Sequence[int],
    parameters: float | None = None,
) -> Table:
    """A decode step at some degrees and batches, by the textbook: what is read and what is sent.

    parameters: weights to read, where a round number is wanted.
    """
    rows = []
    for batch in batches:
        for tp in degrees:
            step = decode_step(model, system, Layout(tp=tp), batch, parameters=parameters)
            latency, transfer = (step.terms[name] for name in MEETINGS)
            times = (step.terms["weights"], latency, transfer, latency + transfer, step.seconds)
            rows.append((batch, tp, *(quantity(seconds, "s") for seconds in times)))
    return Table(
        ("batch", "TP", "weights", "latency", "transfer", "all-reduces", "step"),
        rows,
        caption=f"One decode step, {quantity(system.device.memory_bandwidth, 'B/s')} of memory, "
        f"{meeting_price(system)} ({Label.MODELLED})",
    )


def meeting_price(system: System) -> str:
    """What all-reduces are priced by, in words."""
    if system.collectives is not None:
        return f"all-reduces as recorded with {system.collectives.title} ({Label.CAPTURED})"
    link = system.topology.inside
    return (
        f"{link.title} link of {quantity(link.bandwidth, 'B/s')} and "
        f"{quantity(link.hop_latency, 's')} a hop ({Label.ASSUMED})"
    )


def groups_of(step: StepTime) -> dict[str, float]:
    """The terms in four groups that add up to the step."""
    found = {name: step.terms[name] for name in READING}
    found["all-reduces"] = some(step, MEETINGS)
    return {**found, "the rest": max(0.0, step.seconds - sum(found.values()))}


def steps_picture(title: str, steps: Mapping[str, StepTime]) -> Picture:
    """Steps as bars, each of at most four groups of terms; empty groups are left out."""
    grouped = {name: groups_of(step) for name, step in steps.items()}
    names = (*READING, "all-reduces", "the rest")
    parts = {part: [groups[part] for groups in grouped.values()] for part in names}
    shown = {part: values for part, values in parts.items() if max(values) > 1e-7}
    return stacked_bars(title, shown, list(steps), "s", Label.MODELLED)


def terms_table(steps: Mapping[str, StepTime], *, least: float = 1e-6) -> Table:
    """Every term of some steps that is above `least` seconds in one of them, and the sums."""
    names = [
        name
        for name in next(iter(steps.values())).terms
        if any(step.terms[name] > least for step in steps.values())
    ]
    rows: list[tuple[str, ...]] = [
        (name, *(quantity(step.terms[name], "s") for step in steps.values())) for name in names
    ]
    rows.append(("the step", *(quantity(step.seconds, "s") for step in steps.values())))
    return Table(("term", *steps), rows, caption=f"Decode steps by term ({Label.MODELLED})")


def regimes_table(shapes: Mapping[str, tuple[int, int]], tp: int, batch: int) -> Table:
    """What a split over `tp` does to sketched models of (hidden size, layers) on both links."""
    rows = []
    for name, (hidden, layers) in shapes.items():
        for preset in (TEXTBOOK_NVLINK, TEXTBOOK_PCIE):
            found = sketch(batch, hidden, layers, tp, preset.model)
            times = (found.one_gpu_seconds, found.compute_seconds, found.collective_seconds)
            shown = (quantity(seconds, "s") for seconds in (*times, found.step_seconds))
            rows.append((name, preset.title.partition(", ")[2], *shown, found.regime.value))
    return Table(
        ("shape", "link", "one GPU", "compute", "all-reduces", f"TP {tp}", "what it does"),
        rows,
        caption=f"Batch {batch} ({Label.MODELLED}; links {Label.ASSUMED})",
    )
