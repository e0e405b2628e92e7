"""The collective sketch's answer to where its controls stand: bars, curves, sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from course.labels import Label, quantity
from course.widgets.chart import Axis, Chart, Curve, Look, decades
from course.widgets.explorer_view import Bar, Cell, View
from course.widgets.regime_view import sum_in_words
from course.widgets.sketch_controls import BATCHES, HINT, Position
from course.widgets.sketch_links import Link
from course.widgets.sketch_steps import compared, crossing, crossing_in_words, pays, step
from labkit.plan.decode_sketch import HBM_BANDWIDTH, PEAK_FLOPS, Sketch

LAW = (
    "The split saves compute and pays for two all-reduces a layer. A slow link is always worse "
    "than a fast one; it can still beat one GPU."
)
LOOKS: Mapping[Label, Look] = {
    Label.ASSUMED: "blue",
    Label.CAPTURED: "green",
    Label.MEASURED: "purple",
}
"""Of the curves laid over the chosen one, which is vermillion."""


@lru_cache(maxsize=2048)
def view(position: Position) -> View:
    """What the page shows where the controls stand."""
    steps = list(compared(position))
    result = steps[0][1]
    longest = max(result.one_gpu_seconds, *(each.step_seconds for _, each in steps))
    one_gpu = Bar.of(0, result.one_gpu_seconds, longest)
    return View(
        headline=headline(result),
        is_good=pays(result),
        sentences=(result.regime.sentence, *numbers(position), *beyond_records(position), LAW),
        origin=origin(position.tp, [link for link, _ in steps]),
        hint=HINT,
        caption="One decode step, compute then all-reduces",
        columns=(("time of the step", f"whole track: {quantity(longest, 's')}"),),
        rows=(
            ("one GPU", (Cell(quantity(result.one_gpu_seconds, "s"), (one_gpu,)),)),
            *((link.name, (_step_cell(each, longest),)) for link, each in steps),
        ),
        legend=(("first", "compute"), ("again", "all-reduces")),
        chart=chart(position).geometry(),
    )


def headline(result: Sketch) -> str:
    """The regime's name as a sentence."""
    return _sentence(result.regime.value)


def numbers(position: Position) -> list[str]:
    """The terms of the chosen link's step, what it may cost, and its crossing, in sentences."""
    link, result = position.link, step(position, position.link)
    times = result.one_gpu_seconds / result.step_seconds
    change = f"{times:.3g} times as fast" if times >= 1 else f"{1 / times:.3g} times as long"
    words = sum_in_words(result.compute_seconds, result.collective_seconds)
    payload = quantity(result.payload_bytes, "B", short=True)
    latency = result.latency_seconds / result.collective_seconds
    each = quantity(result.collective_seconds / result.all_reduces, "s")
    return [
        f"One GPU: {quantity(result.one_gpu_seconds, 's')}. {position.tp} GPUs, {link.name}: "
        f"{words}, {change}.",
        f"Each of the {result.all_reduces} all-reduces takes {each} for {payload} of payload; "
        f"{latency:.0%} of that is latency. {_affordable(result)}",
        _sentence(crossing_in_words(position)),
    ]


def _affordable(result: Sketch) -> str:
    if result.affordable_seconds <= 0:
        return "No all-reduce is short enough here: the split saves no compute."
    return (
        f"The split loses to one GPU once an all-reduce takes "
        f"{quantity(result.affordable_seconds, 's')}."
    )


def beyond_records(position: Position) -> list[str]:
    """Which of the shown links were never recorded at these ranks and this payload."""
    names = [
        link.name
        for link, result in compared(position)
        if not link.covers(position.tp, result.payload_bytes)
    ]
    if not names:
        return []
    return [
        f"Not recorded at {position.tp} ranks and this payload, carried over: {'; '.join(names)}."
    ]


def chart(position: Position) -> Chart:
    """The step over the batch: one GPU, the chosen link, those laid over it."""
    shown = [link for link, _ in compared(position)]
    looks: list[Look] = ["vermillion", *(LOOKS[link.label] for link in shown[1:])]
    curves = [
        Curve("one GPU", "ink", _points(position, shown[0], "one_gpu_seconds")),
        *(
            Curve(link.name, look, _points(position, link, "step_seconds"))
            for link, look in zip(shown, looks, strict=True)
        ),
    ]
    return Chart(
        Axis("batch (sequences)", "", tuple(map(float, BATCHES))),
        Axis(f"time of a step on {position.tp} GPUs ({Label.MODELLED})", "s", _around(curves)),
        tuple(curves),
        position.batch,
        "you are here",
        tuple(_mark(position)),
        _sentence(crossing_in_words(position)),
    )


def origin(tp: int, shown: Iterable[Link]) -> str:
    """Where the numbers come from, with their labels."""
    by_label: dict[Label, list[Link]] = {}
    for link in shown:
        by_label.setdefault(link.label, []).append(link)
    parts = [
        f"{Label.MODELLED.symbol} {Label.MODELLED} by labkit.plan.decode_sketch: the compute is "
        f"an H100's, {quantity(HBM_BANDWIDTH, 'B/s')} and {quantity(PEAK_FLOPS, 'FLOP/s')}, "
        "whatever the link.",
        f"{Label.ASSUMED.symbol} {Label.ASSUMED}: every slider, the textbook's round figures.",
    ]
    if recorded := by_label.get(Label.CAPTURED):
        names = "; ".join(f"{link.name}{_off(link, tp)}" for link in recorded)
        sources = "; ".join(dict.fromkeys(_source(link) for link in recorded))
        parts.append(f"{Label.CAPTURED.symbol} {Label.CAPTURED}: {names}. From {sources}.")
    if here := by_label.get(Label.MEASURED):
        names = "; ".join(link.name for link in here)
        parts.append(
            f"{Label.MEASURED.symbol} {Label.MEASURED} on this machine, carried over to {tp} ranks "
            f"by the fitted model: {names}."
        )
    return " ".join(parts)


def _points(position: Position, link: Link, what: str) -> tuple[tuple[float, float], ...]:
    return tuple((batch, getattr(step(position, link, batch), what)) for batch in BATCHES)


def _mark(position: Position) -> Iterable[tuple[float, float, str]]:
    batch = crossing(position, position.link)
    if batch is not None:
        seconds = step(position, position.link, batch).one_gpu_seconds
        yield batch, seconds, f"crossing: batch {batch:.0f}"


def _around(curves: Sequence[Curve]) -> tuple[float, ...]:
    return decades([seconds for curve in curves for _, seconds in curve.points])


def _step_cell(result: Sketch, longest: float) -> Cell:
    compute, collectives = result.compute_seconds, result.collective_seconds
    bars = (Bar.of(0, compute, longest), Bar.of(compute, collectives, longest, "again"))
    return Cell(sum_in_words(compute, collectives), bars)


def _off(link: Link, tp: int) -> str:
    figures = link.figures(tp).removeprefix(f"{link.label}, ")
    return "" if figures == link.label else f" ({figures} at {tp} ranks)"


def _source(link: Link) -> str:
    assert link.preset is not None
    return link.preset.source


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
