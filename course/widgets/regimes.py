"""The regimes explorer: when does splitting a step over GPUs pay, and on which link?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from course.figure import new_figure
from course.labels import Label, quantity
from course.palette import BLUE, HATCHES, VERMILLION, style
from course.table import Table
from course.widgets.drawing import image_bundle
from course.widgets.explorer_paper import on_paper
from course.widgets.regime_view import (
    BANDWIDTHS,
    CONTROLS,
    FAST,
    LABELS,
    ORIGIN,
    POSITIONS,
    SIZES,
    START,
    at,
    headline,
    shown,
    steps,
    sum_in_words,
    view,
)
from course.widgets.twin import Bundle, Twinned

if TYPE_CHECKING:
    from course.widgets.explorer import ExplorerWidget

TABLE_SIZES = (2, 4, 8, 16)
"""Of the slider's sizes, those on paper."""


class RegimeExplorer(Twinned):
    """One GPU against several on a slow and on a fast link; the regime is named in words."""

    title = "When a split pays, in tables"

    def static(self) -> tuple[str, str]:
        answer = view(START)
        position = "; ".join(
            f"{LABELS[name]}: {shown(name, values[START[name]])}"
            for name, values in POSITIONS.items()
        )
        lines = [f"{position}.", *answer.sentences]
        return on_paper(answer.headline, lines, [sizes_table(), reach_table()], ORIGIN)

    def pictures(self) -> list[Bundle]:
        return [draw_steps(START)]

    def make_widget(self) -> ExplorerWidget:
        from course.widgets.explorer import ExplorerWidget

        return ExplorerWidget(CONTROLS, START, view)


def sizes_table() -> Table:
    """TP doubled from step to step, the other controls at their start."""
    rows = []
    for tp in TABLE_SIZES:
        result = at({**START, "tp": SIZES.index(tp)})
        rows.append(
            (
                tp,
                quantity(result.compute_seconds, "s"),
                quantity(result.collective_seconds, "s"),
                quantity(result.step_seconds, "s"),
                quantity(result.fast_step_seconds, "s"),
            )
        )
    slow = shown("bandwidth", BANDWIDTHS[START["bandwidth"]])
    columns = ("TP", "compute", f"all-reduces, {slow}", f"step, {slow}", f"step, {FAST}")
    one_gpu = quantity(at(START).one_gpu_seconds, "s")
    caption = f"The split over more and more GPUs; one GPU takes {one_gpu} ({Label.MODELLED})"
    return Table(columns, rows, caption=caption)


def reach_table() -> Table:
    """Which regime each slider reaches when only it moves from the start."""
    rows = []
    for name, values in POSITIONS.items():
        regimes = [at({**START, name: index}).regime for index in range(len(values))]
        for regime, group in groupby(zip(values, regimes, strict=True), key=lambda pair: pair[1]):
            stretch = [shown(name, value) for value, _ in group]
            reached = stretch[0] if len(stretch) == 1 else f"{stretch[0]} to {stretch[-1]}"
            rows.append((LABELS[name], reached, regime.value))
    caption = f"From the same start, one slider moved at a time ({Label.MODELLED})"
    return Table(("slider", "where it stands", "regime"), rows, caption=caption)


def draw_steps(choice: Mapping[str, int]) -> Bundle:
    """The compared steps as bars, as one image output."""
    from matplotlib import rc_context

    compared = steps(choice)
    places = range(len(compared))
    compute = [seconds for _, seconds, _ in compared]
    collectives = [seconds for _, _, seconds in compared]
    title = headline(at(choice))
    with style(), rc_context({"hatch.color": "white", "hatch.linewidth": 1.0}):
        figure = new_figure(2.2)
        axes = figure.add_subplot()
        axes.barh(places, compute, height=0.6, color=BLUE, label="compute")
        axes.barh(
            places,
            collectives,
            left=compute,
            height=0.6,
            facecolor=VERMILLION,
            edgecolor="white",
            hatch=HATCHES[1],
            linewidth=0,
            label="all-reduces",
        )
        for place, (_, first, second) in enumerate(compared):
            axes.annotate(
                quantity(first + second, "s"),
                (first + second, place),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_yticks(places, [name for name, _, _ in compared])
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"time of one step ({Label.MODELLED})", loc="left")
        axes.set_title(title, pad=26)
        axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(-0.02, 1.0), frameon=False)
        text = "\n".join(f"{name}: {sum_in_words(a, b)}" for name, a, b in compared)
        return image_bundle(figure, title, text)
