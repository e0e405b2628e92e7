"""Figures of single points: predicted against recorded, and one aim against another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from course.labels import Label, quantity
from course.line_ends import MARKERS
from course.palette import INK, SERIES
from course.picture import Picture, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def parity(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    unit: str,
    band: float,
    labels: tuple[Label, Label] = (Label.CAPTURED, Label.MODELLED),
) -> Picture:
    """Points (recorded, predicted) of each series around the diagonal; `band`: a shaded share."""
    values = [value for points in series.values() for point in points for value in point]
    low, high = 0.9 * min(values), 1.1 * max(values)

    def draw(axes: Axes) -> None:
        ends = [low, high]
        axes.fill_between(
            ends,
            [end * (1 - band) for end in ends],
            [end * (1 + band) for end in ends],
            color=INK,
            alpha=0.15,
            lw=0,
        )
        axes.plot(ends, ends, color=INK, lw=1)
        for index, (name, points) in enumerate(series.items()):
            colour, marker = SERIES[index % len(SERIES)], MARKERS[index % len(MARKERS)]
            axes.plot(*zip(*points, strict=True), marker, color=colour, ms=5, alpha=0.85)
            _key(axes, index, name, colour, marker)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _log_ticks(axes, unit)
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.set_xlabel(f"recorded ({labels[0]})")
        axes.set_ylabel(f"predicted ({labels[1]})")
        axes.grid()
        axes.text(
            1.03,
            0.0,
            f"grey: within {100 * band:.0f} %\nabove the line:\npredicted too slow",
            transform=axes.transAxes,
            va="bottom",
            fontsize=9,
        )

    text = [
        f"{name}: " + ", ".join(f"{quantity(a, unit)} -> {quantity(b, unit)}" for a, b in points)
        for name, points in series.items()
    ]
    source = f"(recorded {labels[0]} -> predicted {labels[1]})"
    return drawn(title, [*text, source], draw, height=3.8)


@dataclass(frozen=True)
class Spot:
    """A named point; `is_best`: no other beats it in both aims."""

    name: str
    x: float
    y: float
    is_best: bool


def spots(
    title: str,
    points: Sequence[Spot],
    *,
    x: tuple[str, str],
    y: tuple[str, str],
    label: Label,
) -> Picture:
    """Named points; those that nothing beats are filled, joined and named, the first of a name.

    x, y: (what the axis shows, its unit).
    """
    best = sorted((point for point in points if point.is_best), key=lambda point: point.x)
    others = [point for point in points if not point.is_best]

    def draw(axes: Axes) -> None:
        axes.plot([p.x for p in others], [p.y for p in others], "o", color=INK, mfc="none", ms=5)
        axes.plot([p.x for p in best], [p.y for p in best], "-o", color=SERIES[0], ms=6)
        for before, point in pairwise([None, *best]):
            if point is None or (before is not None and before.name == point.name):
                continue
            axes.annotate(
                point.name,
                (point.x, point.y),
                xytext=(6, -3),
                textcoords="offset points",
                color=SERIES[0],
                va="top",
            )
        axes.set_xlabel(f"{x[0]} ({label})")
        axes.set_ylabel(f"{y[0]} ({label})")
        axes.xaxis.set_major_formatter(lambda value, _: quantity(value, x[1]))
        axes.yaxis.set_major_formatter(lambda value, _: quantity(value, y[1]))
        axes.margins(x=0.18, y=0.12)
        axes.grid()

    text = [
        f"{point.name}: {quantity(point.x, x[1])}, {quantity(point.y, y[1])}"
        + (", beaten by none" if point.is_best else "")
        for point in points
    ]
    return drawn(title, [*text, f"({label})"], draw, height=3.6)


def _key(axes: Axes, index: int, name: str, colour: str, marker: str) -> None:
    """The name of a series beside the axes, after its marker."""
    place = 0.97 - 0.08 * index
    axes.plot(1.04, place, marker, color=colour, transform=axes.transAxes, clip_on=False)
    axes.text(1.07, place, name, color=colour, va="center", transform=axes.transAxes)


def _log_ticks(axes: Axes, unit: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(lambda value, _: quantity(value, unit))
        axis.set_minor_formatter(NullFormatter())
