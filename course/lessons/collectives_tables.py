"""Tables and pictures of lesson 01 that take more arithmetic than a notebook cell should show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course.labels import Label, quantity
from course.lessons.collectives_figures import LINKS, NCCL
from course.picture import Picture, curves
from course.table import Table
from labkit.experiments.collective_demonstration import AlgorithmTraffic, Demonstration
from labkit.experiments.collective_rows import CollectiveTimes
from labkit.experiments.overlap import OverlapTime
from labkit.plan.calibration import Fit, calibrate
from labkit.plan.collective_presets import COLLECTIVE_PRESETS, TEXTBOOK_NVLINK, TEXTBOOK_PCIE
from labkit.plan.collectives import OneOrTwoShot
from labkit.plan.model import ModelSpec
from labkit.plan.recorded_collectives import (
    GRAPH,
    bus_bandwidths,
    compare,
    launch_costs,
    recorded,
)
from labkit.plan.tp_steps import compare_links
from labkit.ranks.algorithms import ALGORITHMS, OrderStudy

A100 = "a100_sxm/vllm_graph/0.14.0/all_reduce"
L40S = "l40s/vllm_graph/0.22.0/all_reduce"
TENSORRT = "h100_sxm/trtllm/1.3.0rc20/all_reduce"
DEGREES = (2, 4, 8)
_DRAWN_SIZES = {4**k * 2**10 for k in range(10)}
MODELS = {
    "gloo": "ring",
    "shared memory": "two_shot",
    "send/recv ring": "ring",
    "send/recv one-shot": "one_shot",
}
"""What is measured here, and the cost model with its structure (two ranks: one shot and two shots
send the same)."""


def title_of(name: str) -> str:
    """A preset's name in words."""
    return COLLECTIVE_PRESETS[name].title


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


def recorded_picture(ranks: int) -> Picture:
    """Recorded all-reduces of H100s by payload, and the textbook's ring beside them."""
    names = {"vLLM, graph": GRAPH, "NCCL": NCCL, "vLLM, eager": GRAPH.replace("graph", "eager")}
    series = {
        short: [
            (point.payload_bytes, point.seconds)
            for point in recorded(name, ranks)
            if point.payload_bytes in _DRAWN_SIZES
        ]
        for short, name in names.items()
    }
    sizes = [p.payload_bytes for p in recorded(GRAPH, ranks) if p.payload_bytes in _DRAWN_SIZES]
    series["textbook (modelled)"] = [
        (size, TEXTBOOK_NVLINK.model.seconds(ranks, size)) for size in sizes
    ]
    title = f"{ranks} H100s: the textbook is far too slow, but for large messages"
    return curves(
        title, series, x=("payload", "B"), y=("one all-reduce", "s"), label=Label.CAPTURED
    )


def floors_table(payload_bytes: int = 1024) -> Table:
    """Seconds of a small all-reduce by number of GPUs, recorded and by the textbook."""
    rows = []
    for name in (GRAPH, TENSORRT, NCCL, A100, L40S):
        found = {
            n: [p.seconds for p in recorded(name, n) if p.payload_bytes == payload_bytes]
            for n in DEGREES
        }
        rows.append((title_of(name), *(quantity(found[n][0], "s") for n in DEGREES)))
    for preset in (TEXTBOOK_NVLINK, TEXTBOOK_PCIE):
        seconds = (quantity(preset.model.seconds(n, payload_bytes), "s") for n in DEGREES)
        rows.append((f"{preset.title} ({Label.MODELLED})", *seconds))
    return Table(
        ("all-reduce of", *(f"{n} GPUs" for n in DEGREES)),
        rows,
        caption=f"{size_of(payload_bytes)} ({Label.CAPTURED} where no other label stands)",
    )


def errors_table(sizes: Sequence[int]) -> Table:
    """How far the textbook is from what was recorded, by size, system and number of GPUs."""
    rows = []
    for name, textbook in (
        (GRAPH, TEXTBOOK_NVLINK),
        (A100, TEXTBOOK_NVLINK),
        (L40S, TEXTBOOK_PCIE),
    ):
        for ranks in DEGREES:
            found = compare(name, textbook, ranks=ranks, sizes=sizes)
            by_size = {one.payload_bytes: f"{one.textbook_error:+.0%}" for one in found}
            rows.append((title_of(name), ranks, *(by_size.get(size, "-") for size in sizes)))
    return Table(
        ("recorded", "GPUs", *(size_of(size) for size in sizes)),
        rows,
        caption=f"Textbook ({Label.MODELLED}) against recorded ({Label.CAPTURED}): +100% is twice "
        "as long",
    )


def launches_table() -> Table:
    """The same kernel launched by the host each time, and replayed in a CUDA graph."""
    rows = [
        (cost.ranks, *(quantity(s, "s") for s in (cost.eager_seconds, cost.graph_seconds)))
        for cost in launch_costs()
    ]
    caption = f"{title_of(GRAPH).partition(',')[0]} on H100, 1 KiB ({Label.CAPTURED})"
    return Table(("GPUs", "eager", "CUDA graph"), rows, caption=caption)


def bus_table(ranks: int) -> Table:
    """Bus bandwidth by payload: wire bytes of a ring over recorded seconds."""
    rows = [
        (size_of(one.payload_bytes), quantity(one.bytes_per_second, "B/s"))
        for one in bus_bandwidths(NCCL, ranks)
    ]
    return Table(
        ("payload", "bus bandwidth"), rows, caption=f"{title_of(NCCL)}, {ranks} GPUs (captured)"
    )


def steps_table(spec: ModelSpec, batch: int) -> Table:
    """A decode step at TP 2, 4 and 8 over assumed and recorded links."""
    rows = []
    for link in compare_links(spec, batch, LINKS, degrees=DEGREES):
        steps = (quantity(step.seconds, "s") for step in link.steps)
        rows.append((link.preset.title, *steps, f"{link.last_gain:.2f}"))
    columns = ("all-reduces priced by", *(f"TP {n}" for n in DEGREES), "TP 8 against TP 4")
    caption = f"Weights of an H100 plus all-reduces, batch {batch} ({Label.MODELLED})"
    return Table(columns, rows, caption=caption)


def shots_table(ranks: int, sizes: Sequence[int]) -> Table:
    """One shot and two shots by size, with the fitted parameters of a recorded kernel."""
    model = shots_model()
    rows = [
        (
            size_of(size),
            quantity(model.one_shot.seconds(ranks, size), "s"),
            quantity(model.two_shot.seconds(ranks, size), "s"),
            "one" if model.choice(ranks, size) is model.one_shot else "two",
        )
        for size in sizes
    ]
    caption = f"{title_of(GRAPH)}, {ranks} GPUs, fitted ({Label.MODELLED})"
    return Table(("payload", "one shot", "two shots", "faster"), rows, caption=caption)


def shots_model() -> OneOrTwoShot:
    """One shot or two as fitted to vLLM's kernel on H100."""
    model = COLLECTIVE_PRESETS[GRAPH].model
    assert isinstance(model, OneOrTwoShot)
    return model


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


def latency_table(spec: ModelSpec, batches: Iterable[int], ranks: int) -> Table:
    """Which part of one decode all-reduce is latency, by batch."""
    rows = []
    for batch in batches:
        payload = batch * spec.hidden_size * 2
        cells = []
        for preset in (TEXTBOOK_NVLINK, COLLECTIVE_PRESETS[NCCL], COLLECTIVE_PRESETS[GRAPH]):
            terms = preset.chosen_model(ranks).terms(ranks, payload)
            cells.append(f"{terms.latency_seconds / terms.seconds:.0%}")
        rows.append((batch, size_of(payload), *cells))
    columns = ("batch", "payload", "textbook", title_of(NCCL), title_of(GRAPH))
    caption = f"Part of an all-reduce over {ranks} GPUs that is latency ({Label.MODELLED})"
    return Table(columns, rows, caption=caption)


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
