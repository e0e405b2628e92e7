"""Tables and pictures of lesson 01 about recorded collectives, beside what textbooks assume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course.labels import Label, quantity
from course.lessons.collectives_figures import DEGREES, LINKS, NCCL
from course.lessons.collectives_tables import size_of
from course.picture import Picture, curves
from course.table import Table
from labkit.plan.collective_presets import COLLECTIVE_PRESETS, TEXTBOOK_NVLINK, TEXTBOOK_PCIE
from labkit.plan.collectives import OneOrTwoShot
from labkit.plan.decoder import DecoderSpec
from labkit.plan.recorded_collectives import (
    GRAPH,
    bus_bandwidths,
    compare,
    launch_costs,
    recorded,
)
from labkit.plan.tp_steps import compare_links

A100 = "a100_sxm/vllm_graph/0.14.0/all_reduce"
L40S = "l40s/vllm_graph/0.22.0/all_reduce"
TENSORRT = "h100_sxm/trtllm/1.3.0rc20/all_reduce"
_DRAWN_SIZES = {4**k * 2**10 for k in range(10)}


def title_of(name: str) -> str:
    """A preset's name in words."""
    return COLLECTIVE_PRESETS[name].title


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
    title = f"{ranks} H100s: the textbook fits large messages only"
    return curves(
        title, series, x=("payload", "B"), y=("one all-reduce", "s"), label=Label.CAPTURED
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


def steps_table(spec: DecoderSpec, batch: int) -> Table:
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


def latency_table(spec: DecoderSpec, batches: Iterable[int], ranks: int) -> Table:
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
