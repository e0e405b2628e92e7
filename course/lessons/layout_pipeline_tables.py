"""Tables of lesson 03 about pipeline stages and experts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from course.labels import Label, quantity
from course.lessons.layout_step_tables import MEETINGS, some
from course.table import Table
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.pipeline_time import bubble_fraction, busy_fraction
from labkit.plan.step_work import expected_coverage
from labkit.plan.steptime import System, decode_step


def bubble_table(pipelines: Iterable[tuple[int, int]]) -> Table:
    """How much pipelines of (stages, microbatches) idle when filled once, and work in rounds."""
    rows = [
        (p, m, f"{bubble_fraction(p, m):.0%}", f"{busy_fraction(p, m):.0%}") for p, m in pipelines
    ]
    return Table(
        ("stages", "microbatches", "bubble, filled and drained once", "busy, round and round"),
        rows,
        caption=f"Parts of the time ({Label.MODELLED})",
    )


def coverage_table(routings: Iterable[tuple[int, int, int]]) -> Table:
    """The part of the experts that a step reads, of (experts, of them for a token, tokens)."""
    rows = [(e, k, b, f"{expected_coverage(e, k, b):.2%}") for e, k, b in routings]
    return Table(
        ("experts", "a token uses", "tokens in the step", "experts read"),
        rows,
        caption=f"Even routing ({Label.MODELLED}; even: {Label.ASSUMED})",
    )


def units_table(units: Mapping[str, Layout], experts: int, extra: Mapping[str, int]) -> Table:
    """Layouts of prefill and decode units. extra: expert copies or shared experts a unit adds."""
    rows = []
    for name, unit in units.items():
        slots = experts + extra.get(name, 0)
        rows.append(
            (
                name,
                f"TP {unit.tp} x DP {unit.dp}",
                f"EP {unit.ep}",
                unit.world_size,
                f"{slots / unit.ep:.3g}",
            )
        )
    return Table(
        ("unit", "attention", "experts", "GPUs", "expert slots a GPU"),
        rows,
        caption=f"{experts} routed experts ({Label.MODELLED} from published layouts)",
    )


def orders_table(
    model: ModelSpec, orders: Mapping[str, System], layout: Layout, batch: int, context: int
) -> Table:
    """One layout placed on nodes in several orders: where its meetings run, what they cost."""
    rows = []
    for name, system in orders.items():
        step = decode_step(model, system, layout, batch, context)
        rows.append(
            (
                name,
                quantity(some(step, MEETINGS), "s"),
                quantity(step.terms["pipeline sends"], "s"),
                quantity(step.terms["all-to-all"], "s"),
                quantity(step.seconds, "s"),
            )
        )
    return Table(
        ("order", "all-reduces", "stage to stage", "all-to-alls", "step"),
        rows,
        caption=f"Batch {batch}, {context:,} tokens of context ({Label.MODELLED})",
    )
