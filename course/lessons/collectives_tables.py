"""Tables and pictures of lesson 01 about what runs on the ranks here: counted and measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course.labels import Label, quantity
from course.picture import Picture, curves
from course.table import Table
from labkit.experiments.collective_demonstration import AlgorithmTraffic, Demonstration
from labkit.experiments.collective_rows import CollectiveTimes
from labkit.experiments.overlap import OverlapTime
from labkit.plan.calibration import Fit, calibrate
from labkit.ranks.algorithms import ALGORITHMS, OrderStudy

MODELS = {
    "gloo": "ring",
    "shared memory": "two_shot",
    "send/recv ring": "ring",
    "send/recv one-shot": "one_shot",
}
"""What is measured here, and the cost model with its structure (two ranks: one shot and two shots
send the same)."""


def size_of(value: float) -> str:
    """`16 KiB`"""
    return quantity(value, "B", short=True)


def demonstrations_table(ranks: Sequence[Sequence[Demonstration]]) -> Table:
    """For each collective: what every rank had, and what it has afterwards."""
    rows = []
    for shown in zip(*ranks, strict=True):
        before = " | ".join(" ".join(map(str, one.before)) for one in shown)
        after = " | ".join(" ".join(map(str, one.after)) for one in shown)
        rows.append((shown[0].op, before, after))
    return Table(
        ("collective", "before: rank 0 | 1 | 2", "after: rank 0 | 1 | 2"),
        rows,
        caption=f"Run on real ranks ({Label.MEASURED})",
    )


def traffic_table(ranks: Sequence[Sequence[AlgorithmTraffic]]) -> Table:
    """Messages and bytes of the busiest rank, counted, beside what the cost model says."""
    rows = []
    for shown in zip(*ranks, strict=True):
        first = shown[0]
        model = ALGORITHMS[first.name].cost(0.0, 1.0)
        sent = max(one.wire_bytes for one in shown)
        rows.append(
            (
                first.title,
                model.steps(first.ranks),
                max(one.messages for one in shown),
                sent,
                round(model.wire_bytes(first.ranks, first.payload_bytes)),
                f"{sent / first.payload_bytes:.3g}",
            )
        )
    columns = (
        "algorithm",
        "steps (modelled)",
        "messages (counted)",
        "bytes sent (counted)",
        "bytes sent (modelled)",
        "x payload",
    )
    caption = f"{size_of(first.payload_bytes)} over {first.ranks} ranks; the rank that sends most"
    return Table(columns, rows, caption=caption)


def times_picture(times: CollectiveTimes, title: str) -> Picture:
    """Median seconds by payload, a curve for each implementation."""
    names = list(dict.fromkeys(row.implementation for row in times.rows))
    series = {
        name: [(point.payload_bytes, point.seconds) for point in times.points(name)]
        for name in names
    }
    return curves(
        title, series, x=("payload", "B"), y=("one all-reduce", "s"), label=Label.MEASURED
    )


def fit_here(times: CollectiveTimes, name: str) -> Fit:
    """The cost model of `MODELS` fitted to what was measured here."""
    return calibrate(times.points(name), MODELS[name])


def fits_table(times: CollectiveTimes) -> Table:
    """For each implementation: latency, bandwidth, how far off, and where most."""
    rows = []
    for name, model in MODELS.items():
        fit = fit_here(times, name)
        values = {key: found.value for key, found in fit.parameters.items()}
        latency = values.get("hop_latency", values.get("latency", 0.0))
        worst = f"{size_of(fit.worst.point.payload_bytes)}: {fit.worst.error:+.0%}"
        rows.append(
            (
                name,
                model.replace("_", " "),
                quantity(latency, "s"),
                quantity(values["bandwidth"], "B/s"),
                f"{fit.mean_abs_error:.0%}",
                worst,
            )
        )
    return Table(
        ("implementation", "model", "latency of a step", "bandwidth", "off by", "most at"),
        rows,
        caption=f"Models fitted to the medians above ({Label.MODELLED} from {Label.MEASURED})",
    )


def order_table(study: OrderStudy) -> Table:
    """How many elements got other bits than in a message of their own."""
    messages = list(dict.fromkeys(row.message for row in study.rows))[1:]
    rows = []
    for algorithm in dict.fromkeys(row.algorithm for row in study.rows):
        changed = {row.message: row.changed for row in study.rows if row.algorithm == algorithm}
        rows.append((algorithm, *(changed[message] for message in messages)))
    caption = (
        f"Of {study.elements:,} {study.dtype} elements over {study.ranks} ranks, those with other "
        f"bits than alone ({Label.MEASURED})"
    )
    return Table(("all-reduce", *messages), rows, caption=caption)


def overlap_table(overlaps: Iterable[OverlapTime]) -> Table:
    """An all-reduce beside matrix products: one after the other, and at the same time."""
    rows = [
        (
            one.transport,
            quantity(one.all_reduce_seconds, "s"),
            quantity(one.product_seconds, "s"),
            quantity(one.one_after_other_seconds, "s"),
            quantity(one.side_by_side_seconds, "s"),
            f"{one.hidden_share:.0%}",
        )
        for one in overlaps
    ]
    columns = ("over", "all-reduce", "products", "one after the other", "side by side", "hidden")
    return Table(columns, rows, caption=f"Medians on the slower rank ({Label.MEASURED})")
