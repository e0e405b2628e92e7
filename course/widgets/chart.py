"""Curves on two logarithmic axes: one description, drawn in the page and on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from course.labels import quantity
from course.palette import BLUE, GREEN, INK, PURPLE, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Look = Literal["ink", "vermillion", "blue", "green", "purple"]
STYLES: dict[Look, tuple[str, str, float]] = {
    "ink": (INK, "6 4", 2.0),
    "vermillion": (VERMILLION, "", 3.0),
    "blue": (BLUE, "2 3", 2.0),
    "green": (GREEN, "9 3 2 3", 2.0),
    "purple": (PURPLE, "9 3", 2.0),
}
"""Colour, dashes (as in SVG), width: a curve is known by its dashes where colours are not seen."""

WIDTH, HEIGHT = 760, 280
LEFT, RIGHT, TOP, BOTTOM = 62, 290, 38, 42
"""Margins around the curves, in the units of `WIDTH`; names stand in the right one."""
LINE = 17
"""The least distance between two names."""


@dataclass(frozen=True)
class Axis:
    """What an axis shows, its unit as `quantity` takes it, its ticks; the ends are ticks."""

    name: str
    unit: str
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """How far along the axis a value is: 0 at its first tick, 1 at its last."""
        low, high = math.log(self.ticks[0]), math.log(self.ticks[-1])
        return (math.log(value) - low) / (high - low)

    def words(self, value: float) -> str:
        """A value with its unit."""
        return quantity(value, self.unit, short=True) if self.unit else f"{value:g}"


@dataclass(frozen=True)
class Curve:
    """Points from left to right, and the name at their end."""

    name: str
    look: Look
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chart:
    """Curves, a line where the reader stands, and marked points.

    here: a value of `x`. marks: (x, y, words) each. says: the finding, for a listener.
    """

    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    here: float
    here_words: str
    marks: tuple[tuple[float, float, str], ...]
    says: str

    def geometry(self) -> dict[str, Any]:
        """Where everything is, as plain data: the page only draws."""
        ends = [self._y(curve.points[-1][1]) for curve in self.curves]
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "frame": [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM],
            "x_name": self.x.name,
            "y_name": self.y.name,
            "x_ticks": [[self._x(tick), self.x.words(tick)] for tick in self.x.ticks],
            "y_ticks": [[self._y(tick), self.y.words(tick)] for tick in self.y.ticks],
            "curves": [
                {"name": curve.name, "path": self._path(curve), "end": end, "label": label}
                | dict(zip(("colour", "dashes", "width"), STYLES[curve.look], strict=True))
                for curve, end, label in zip(self.curves, ends, apart(ends), strict=True)
            ],
            "here": [self._x(self.here), self.here_words],
            "marks": [
                [self._x(x), self._y(y), words, self.is_right(x)] for x, y, words in self.marks
            ],
            "says": self.says,
        }

    def is_right(self, x: float) -> bool:
        """Whether a mark's words have room on its left: above rising curves. Else right, below."""
        return self.x.share(x) > 0.4

    def draw(self, axes: Axes) -> None:
        """The same on matplotlib axes."""
        axes.set(xscale="log", yscale="log")
        axes.set(xlim=(self.x.ticks[0], self.x.ticks[-1]))
        axes.set(ylim=(self.y.ticks[0], self.y.ticks[-1]))
        axes.set_xticks(self.x.ticks, [self.x.words(tick) for tick in self.x.ticks])
        axes.set_yticks(self.y.ticks, [self.y.words(tick) for tick in self.y.ticks])
        axes.minorticks_off()
        axes.tick_params(labelsize=9)
        axes.set_xlabel(self.x.name)
        axes.set_title(self.y.name, fontsize=9, fontweight="normal")
        axes.grid(axis="y")
        axes.axvline(self.here, color=INK, linewidth=0.8)
        for x, y, words in self.marks:
            axes.plot(x, y, "o", markersize=9, markeredgecolor=INK, markerfacecolor="none")
            place, side = ((-7, 9), "right") if self.is_right(x) else ((7, -14), "left")
            axes.annotate(words, (x, y), place, textcoords="offset points", fontsize=8, ha=side)
        ends = [self._y(curve.points[-1][1]) for curve in self.curves]
        for curve, place_of_name in zip(self.curves, apart(ends), strict=True):
            _draw_curve(axes, curve, 1 - (place_of_name - TOP) / (HEIGHT - TOP - BOTTOM))

    def _x(self, value: float) -> float:
        return round(LEFT + self.x.share(value) * (WIDTH - RIGHT - LEFT), 1)

    def _y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - BOTTOM - TOP), 1)

    def _path(self, curve: Curve) -> str:
        return "M" + "L".join(f"{self._x(x):g} {self._y(y):g}" for x, y in curve.points)


def _draw_curve(axes: Axes, curve: Curve, height: float) -> None:
    """The curve; on the right, `height` up the axis, a piece of it and its name."""
    colour, dashes, width = STYLES[curve.look]
    pattern: Any = (0, [float(length) / 2 for length in dashes.split()]) if dashes else "-"
    line: dict[str, Any] = {"color": colour, "linestyle": pattern, "linewidth": 0.8 * width}
    axes.plot(*zip(*curve.points, strict=True), **line)
    axes.plot([1.02, 1.07], [height, height], transform=axes.transAxes, clip_on=False, **line)
    axes.text(1.085, height, curve.name, va="center", fontsize=8, transform=axes.transAxes)


def decades(values: Sequence[float]) -> tuple[float, ...]:
    """Ticks 1, 2, 5, 10, ... (of any size) around all values; 1 and 10 only for a wide range."""
    low, high = min(values), max(values)
    is_wide = math.log10(high / low) > 2.5
    steps = (1, 10) if is_wide else (1, 2, 5, 10)
    scale = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    every = sorted({step * 10.0**power for power in scale for step in steps})
    first = max(tick for tick in every if tick <= low)
    last = min(tick for tick in every if tick >= high and tick > first)
    return tuple(tick for tick in every if first <= tick <= last)


def apart(places: Sequence[float]) -> list[float]:
    """The same places in the same order, moved so that names there do not overlap."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    found = list(places)
    lowest = HEIGHT - BOTTOM + 6.0
    for index in reversed(order):
        found[index] = min(found[index], lowest)
        lowest = found[index] - LINE
    return found
