"""A decode step over several ranks, drawn from their traces: compute, waiting, exchange."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course.figure import new_figure, png_of
from course.labels import Label, quantity
from course.palette import BLUE, GREEN, INK, VERMILLION, style
from course.picture import Picture
from labkit.experiments.step_spans import Activity, Span, seconds_by_activity, step_spans
from labkit.ranks.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS: Mapping[Activity, tuple[str, float]] = {
    Activity.COMPUTE: (GREEN, 0.24),
    Activity.WAIT: (VERMILLION, 0.5),
    Activity.EXCHANGE: (BLUE, 0.8),
}
"""Colour and height: a span is known by its height where colours are not seen."""
ZOOMED = 4
"""Collectives that the lower part shows: two layers of a model."""
WIDTH = 8.0


def timeline(traces: Sequence[Trace], title: str | None = None) -> Picture:
    """One row per rank: above the whole step, below a few of its collectives, large.

    The title, unless given, is the finding: what the step's time is spent on.

    Raises ValueError for traces that make no timeline (`step_spans`).
    """
    spans = step_spans(traces)
    shares = [seconds_by_activity(spans, trace.rank) for trace in traces]
    title = title or _finding(traces, shares)
    numbers = _middle(len(traces[0]))
    part = f"the shaded part: collectives {numbers[0]} to {numbers[-1]} of {len(traces[0])}"
    text = [
        *(_line(trace, share) for trace, share in zip(traces, shares, strict=True)),
        part,
        *(_part_line(trace.rank, spans, numbers) for trace in traces),
        f"({Label.MEASURED})",
    ]
    png = _drawn(title, spans, numbers, part, [trace.rank for trace in traces])
    return Picture(title, "\n".join(text), png, width=int(WIDTH * 100))


def _finding(traces: Sequence[Trace], shares: Sequence[Mapping[Activity, float]]) -> str:
    wait, exchange, compute = (
        sum(share[activity] for share in shares)
        for activity in (Activity.WAIT, Activity.EXCHANGE, Activity.COMPUTE)
    )
    step = wait + exchange + compute
    if len(traces) == 1:
        calls = "1 collective" if len(traces[0]) == 1 else f"{len(traces[0])} collectives"
        inside = f"{100 * (wait + exchange) / step:.0f} % of it passes in {calls}"
        return f"A step on 1 rank: {inside}, which send nothing"
    return (
        f"A step over {len(traces)} ranks: {100 * compute / step:.0f} % computing, "
        f"{100 * wait / step:.0f} % waiting, {100 * exchange / step:.0f} % exchanging"
    )


def _middle(collectives: int) -> range:
    """The numbers of a few collectives from the middle; the first of them is even where it can,
    as those after attention are in a decode step, whose first belongs to the embedding."""
    first = max(1, (collectives - ZOOMED) // 4 * 2)
    return range(first, min(first + ZOOMED, collectives + 1))


def _line(trace: Trace, share: Mapping[Activity, float]) -> str:
    calls = ", ".join(f"{count} {op}" for op, count in trace.count_by_op().items())
    parts = ", ".join(f"{name} {quantity(seconds, 's')}" for name, seconds in share.items())
    return f"rank {trace.rank}: {parts}; {calls}"


def _part_line(rank: int, spans: Sequence[Span], numbers: range) -> str:
    mine = [span for span in spans if span.rank == rank and span.number in numbers]
    return f"rank {rank}: " + ", ".join(f"{s.activity} {quantity(s.seconds, 's')}" for s in mine)


def _drawn(
    title: str, spans: Sequence[Span], numbers: range, part: str, ranks: Sequence[int]
) -> bytes:
    from matplotlib.patches import Patch

    shaded = [span for span in spans if span.number in numbers]
    start = 1e3 * min(span.started for span in shaded)
    stop = 1e3 * max(span.ended for span in shaded)
    with style():
        figure = new_figure(2.2 + 0.9 * len(ranks), WIDTH)
        whole, large = figure.subplots(2)
        _draw_rows(whole, spans, ranks)
        whole.set_title(title, color=INK, pad=28)
        whole.legend(
            handles=[Patch(color=colour, label=name) for name, (colour, _) in LOOKS.items()],
            ncols=len(LOOKS),
            loc="lower left",
            bbox_to_anchor=(-0.02, 1.0),
            frameon=False,
        )
        whole.axvspan(start, stop, color=INK, alpha=0.3, linewidth=0, zorder=0)
        _draw_rows(large, spans, ranks)
        _number_collectives(large, shaded)
        large.set_xlim(start, stop)
        large.set_title(part, color=INK, fontsize=10, fontweight="normal", pad=16)
        large.set_xlabel(f"milliseconds since the step's first collective ({Label.MEASURED})")
        return png_of(figure)


def _draw_rows(axes: "Axes", spans: Sequence[Span], ranks: Sequence[int]) -> None:
    for activity, (colour, height) in LOOKS.items():
        drawn = [span for span in spans if span.activity is activity]
        axes.barh(
            [ranks.index(span.rank) for span in drawn],
            [1e3 * span.seconds for span in drawn],
            left=[1e3 * span.started for span in drawn],
            height=height,
            color=colour,
            linewidth=0,
        )
    axes.set_yticks(range(len(ranks)), [f"rank {rank}" for rank in ranks])
    axes.set_ylim(len(ranks) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0)


def _number_collectives(axes: "Axes", spans: Sequence[Span]) -> None:
    """Write each collective's number above the rows, where its exchange begins."""
    begins: dict[int, float] = {}
    for span in spans:
        if span.activity is Activity.EXCHANGE:
            begins.setdefault(span.number, 1e3 * span.started)
    for number, begin in begins.items():
        axes.annotate(f"no. {number}", (begin, -0.5), (0, 2), textcoords="offset points")
