"""Names at the ends of lines in a figure: told apart by marker too, and never over each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vPX<>*"
_GAP = 0.055
"""Between two names, as a part of the axis, in a panel some 3.6 inches high."""


def name_ends(axes: Axes, ends: Mapping[str, tuple[float, str, str]], *, gap: float = _GAP) -> None:
    """Write each line's name to the right of the axes, at the height of its end.

    ends: name -> (last value, colour, marker). Call it when the limits of the log axis are final.
    """
    low, high = (math.log(limit) for limit in axes.get_ylim())
    heights = {name: (math.log(end[0]) - low) / (high - low) for name, end in ends.items()}
    for name, place in spread(heights, gap=gap).items():
        _, colour, marker = ends[name]
        axes.plot(1.025, place, marker, color=colour, ms=4, transform=axes.transAxes, clip_on=False)
        axes.text(1.04, place, name, color=colour, va="center", transform=axes.transAxes)


def spread(places: dict[str, float], *, gap: float = _GAP) -> dict[str, float]:
    """The same order from high to low, moved down where two names would overlap."""
    found: dict[str, float] = {}
    at_most = 1.0
    for name, place in sorted(places.items(), key=lambda item: -item[1]):
        found[name] = min(place, at_most)
        at_most = found[name] - gap
    return found
