"""Figures for notebook cells: a PNG that reads on dark and light, and the same numbers as text."""

import base64
import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course.figure import WIDTH, new_figure, png_of
from course.labels import Label, quantity
from course.line_ends import MARKERS, name_ends
from course.palette import HATCHES, INK, SERIES, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 8
"""Sizes written under an axis: more would run into each other."""


@dataclass(frozen=True)
class Picture:
    """A drawn figure. title: its finding. text: the plotted numbers, for readers and exports."""

    title: str
    text: str
    png: bytes
    width: int

    def __repr__(self) -> str:
        return f"{self.title}\n{self.text}"

    def _repr_html_(self) -> str:
        numbers = f"<pre>{html.escape(self.text)}</pre>"
        return (
            f"<details><summary>{html.escape(self.title)}: the numbers</summary>{numbers}</details>"
        )

    def _ipython_display_(self) -> None:
        """Two outputs, so that the numbers stay in every export: the image, and under it a fold."""
        from IPython.display import display

        image = base64.b64encode(self.png).decode("ascii")
        size = {"image/png": {"width": self.width, "alt": self.title}}
        display({"image/png": image, "text/plain": self.title}, raw=True, metadata=size)
        display({"text/html": self._repr_html_(), "text/plain": self.text}, raw=True)


def stacked_bars(
    title: str, parts: Mapping[str, Sequence[float]], bars: Sequence[str], unit: str, label: Label
) -> Picture:
    """Horizontal bars, one per name in `bars`, each stacked from `parts` (part name -> one value
    per bar). Parts differ by colour and hatch and are named above the first bar; totals stand at
    the bars' ends."""
    for name, values in parts.items():
        if len(values) != len(bars):
            raise ValueError(f"part {name!r} has {len(values)} values for {len(bars)} bars")
    totals = [sum(values[i] for values in parts.values()) for i in range(len(bars))]

    def draw(axes: "Axes") -> None:
        left = [0.0] * len(bars)
        for index, (name, values) in enumerate(parts.items()):
            colour, hatch = SERIES[index % len(SERIES)], HATCHES[index % len(HATCHES)]
            axes.barh(bars, values, left=left, color=colour, hatch=hatch, height=0.6, label=name)
            left = [start + value for start, value in zip(left, values, strict=True)]
        for bar, total in enumerate(totals):
            axes.text(total, bar, f"  {quantity(total, unit, short=True)}", va="center")
        axes.invert_yaxis()
        axes.set_xlim(0, max(totals) * 1.2)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.set_xlabel(f"bar ends: totals ({label})", loc="left")
        axes.legend(ncols=len(parts), loc="lower left", bbox_to_anchor=(-0.02, 1.0), frameon=False)
        axes.tick_params(axis="y", length=0)

    lines = [
        f"{bar}: {quantity(total, unit)} = "
        + " + ".join(f"{quantity(values[i], unit)} {name}" for name, values in parts.items())
        for i, (bar, total) in enumerate(zip(bars, totals, strict=True))
    ]
    return drawn(title, [*lines, f"({label})"], draw, height=1.3 + 0.45 * len(bars))


def curves(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x: tuple[str, str],
    y: tuple[str, str],
    label: Label,
) -> Picture:
    """Curves through (x, y) points on logarithmic axes, named beside their ends.

    x, y: (what the axis shows, its unit).
    """
    from matplotlib.ticker import LogLocator

    def draw(axes: "Axes") -> None:
        ends = {}
        for index, (name, points) in enumerate(series.items()):
            colour, marker = SERIES[index % len(SERIES)], MARKERS[index % len(MARKERS)]
            axes.plot(*zip(*points, strict=True), color=colour, marker=marker)
            ends[name] = (points[-1][1], colour, marker)
        axes.set_xscale("log")
        axes.set_yscale("log")
        ticks = sorted({point[0] for points in series.values() for point in points})
        ticks = ticks[:: math.ceil(len(ticks) / MOST_TICKS)]
        axes.set_xticks(ticks, [quantity(tick, x[1], short=True) for tick in ticks])
        axes.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(lambda value, _: quantity(value, y[1]))
        axes.set_xlabel(x[0])
        axes.set_ylabel(f"{y[0]} ({label})")
        axes.grid(axis="y")
        name_ends(axes, ends, gap=0.08)

    text = [
        f"{name}: " + ", ".join(f"{quantity(a, x[1])} -> {quantity(b, y[1])}" for a, b in points)
        for name, points in series.items()
    ]
    return drawn(title, [*text, f"({label})"], draw, height=3.2)


def drawn(
    title: str, text: Sequence[str], draw: "Callable[[Axes], None]", height: float
) -> Picture:
    """A figure that `draw` fills, `height` inches high; `text`: the numbers it shows."""
    with style():
        figure = new_figure(height)
        axes = figure.add_subplot()
        draw(axes)
        axes.set_title(title, color=INK, pad=28 if axes.get_legend() else 10)
        png = png_of(figure)
    return Picture(title, "\n".join(text), png, width=int(WIDTH * 100))
