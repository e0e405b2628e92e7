"""Times of collectives as a picture: what `labkit bench collectives --plot FILE` writes.

labkit finds it through the entry point group `labkit.plots`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from course.figure import WIDTH, new_figure, png_of
from course.labels import quantity
from course.line_ends import MARKERS, name_ends
from course.palette import INK, SERIES, style
from labkit.experiments.collective_rows import CollectiveRow, CollectiveTimes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = ("-", "--", ":")


def draw(times: CollectiveTimes, file: Path) -> None:
    """Write a PNG with a panel for each collective and number of ranks."""
    panels = list(dict.fromkeys((row.op, row.ranks) for row in times.rows))
    names = list(dict.fromkeys(row.implementation for row in times.rows))
    with style():
        figure = new_figure(3.6 * len(panels), WIDTH * 1.3)
        for number, (op, ranks) in enumerate(panels, start=1):
            axes = figure.add_subplot(len(panels), 1, number)
            rows = [row for row in times.rows if (row.op, row.ranks) == (op, ranks)]
            _draw_panel(axes, rows, names)
            axes.set_title(finding(rows), color=INK)
        figure.supxlabel(textwrap.fill(times.source, 150), fontsize=6, x=0.01, ha="left")
        file.write_bytes(png_of(figure))


def finding(rows: Sequence[CollectiveRow]) -> str:
    """What the rows of one collective and number of ranks say: who is fastest at the smallest."""
    smallest = min(row.payload_bytes for row in rows)
    at_smallest = sorted(
        (row for row in rows if row.payload_bytes == smallest), key=lambda row: row.seconds
    )
    first, last = at_smallest[0], at_smallest[-1]
    size = quantity(smallest, "B", short=True)
    text = f"{first.op}, {first.ranks} ranks, {size}: {first.implementation} takes "
    text += quantity(first.seconds, "s")
    if last is not first:
        text += f", {last.implementation} {quantity(last.seconds, 's')}"
    return text


def _draw_panel(axes: Axes, rows: Sequence[CollectiveRow], names: Sequence[str]) -> None:
    """One line for each implementation, its quartiles as bars, its name at its end."""
    ends = {}
    for index, name in enumerate(names):
        mine = sorted(
            (row for row in rows if row.implementation == name), key=lambda row: row.payload_bytes
        )
        if not mine:
            continue
        below = [row.seconds - row.quartiles[0] for row in mine]
        above = [row.quartiles[1] - row.seconds for row in mine]
        axes.errorbar(
            [row.payload_bytes for row in mine],
            [row.seconds for row in mine],
            yerr=(below, above),
            color=SERIES[index % len(SERIES)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle=LINES[index // len(SERIES) % len(LINES)],
            markersize=4,
        )
        ends[name] = (mine[-1].seconds, SERIES[index % len(SERIES)], MARKERS[index % len(MARKERS)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = sorted({row.payload_bytes for row in rows})
    shown = ticks[:: math.ceil(len(ticks) / 10)]
    axes.set_xticks(shown, [quantity(tick, "B", short=True) for tick in shown])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: quantity(value, "s"))
    axes.set_xlabel("payload")
    axes.set_ylabel("median and quartiles (measured)")
    axes.grid(axis="y")
    name_ends(axes, ends)
