"""Tables of lesson 03 about pipeline stages and experts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from course.labels import Label, quantity
from course.lessons.layout_step_tables import MEETINGS, some
from course.picture import Picture, stacked_bars
from course.table import Table
from labkit.plan.collective_presets import CollectivePreset
from labkit.plan.hardware import DeviceSpec
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.objectives import Objective
from labkit.plan.pipeline_time import bubble_fraction, busy_fraction
from labkit.plan.placement_order import Orders, compare_orders
from labkit.plan.question import Question
from labkit.plan.shard import pipeline_ranges
from labkit.plan.stage_balance import balance_layers, end_bytes, layer_bytes, stage_costs
from labkit.plan.step_work import expected_coverage


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


def orders_of(
    model: ModelSpec, layout: Layout, batch: int, device: DeviceSpec, meeting: CollectivePreset
) -> Orders:
    """Both orders of one replica on as many nodes as it fills.

    Raises ValueError for a layout that does not cross nodes both ways.
    """
    asked = Question(model, device, layout.world_size, Objective.LATENCY, collectives=meeting)
    found = compare_orders(asked, layout, batch)
    if found is None:
        raise ValueError(f"{layout} has no second order: it needs TP and PP, and several nodes")
    return found


def orders_table(found: Mapping[str, Orders]) -> Table:
    """Tensor parallel inside the node and stages across nodes, against the other way round."""
    rows = []
    for name, orders in found.items():
        for words, order in (("TP", orders.tp_inside), ("PP", orders.pp_inside)):
            step = order.decode
            rows.append(
                (
                    name,
                    words,
                    quantity(order.network_bytes, "B", short=True),
                    quantity(some(step, MEETINGS), "s"),
                    quantity(step.seconds, "s"),
                )
            )
    return Table(
        ("model and layout", "inside the node", "over the network", "all-reduces", "step"),
        rows,
        caption=f"The two orders ({Label.MODELLED})",
    )


def splits(model: ModelSpec, stages: int) -> dict[str, tuple[range, ...]]:
    """Layers over stages by number, by the bytes a rank holds, by the bytes a step reads."""
    first, last = end_bytes(model)
    costs = layer_bytes(model)
    return {
        "by number": pipeline_ranges(model.num_layers, stages),
        "by memory": balance_layers(costs, stages, first=first, last=last),
        "by time": balance_layers(costs, stages, last=last),
    }


def balance_table(model: ModelSpec, stages: int) -> Table:
    """What the stages hold, and read in a decode step, under three ways to deal out layers."""
    first, last = end_bytes(model)
    costs = layer_bytes(model)
    rows = []
    for name, ranges in splits(model, stages).items():
        held = stage_costs(costs, ranges, first=first, last=last)
        read = stage_costs(costs, ranges, last=last)
        rows.append(
            (
                name,
                ", ".join(str(len(layers)) for layers in ranges),
                *(quantity(max(some), "B", short=True) for some in (held, read)),
                f"{sum(read) / (stages * max(read)):.1%}",
            )
        )
    return Table(
        ("layers dealt", "layers of the stages", "most held", "most read", "stages busy"),
        rows,
        caption=f"Weights of {stages} stages ({Label.MODELLED})",
    )


def balance_picture(title: str, model: ModelSpec, stages: int) -> Picture:
    """What each stage holds when layers are dealt by number, and by memory."""
    first, last = end_bytes(model)
    costs, found = layer_bytes(model), splits(model, stages)
    bars, inside, ends = [], [], []
    for name in ("by number", "by memory"):
        for stage, layers in enumerate(found[name]):
            bars.append(f"{name}, stage {stage}")
            inside.append(sum(costs[layer] for layer in layers))
            ends.append(first * (stage == 0) + last * (stage == stages - 1))
    parts = {"layers": inside, "embedding or LM head": ends}
    return stacked_bars(title, parts, bars, "B", Label.MODELLED)
