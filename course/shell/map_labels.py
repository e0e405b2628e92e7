"""Labels beside the curves of a map: each where it covers no box, no curve and no other label."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from course.shell.map_curves import Curve, Rect

LABEL_TEXT, LABEL_LINE = 11.5, 14.0
ROOMS = (13, 17, 22, 30)
"""Line lengths tried, in characters."""
PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)
BESIDE = (5.0, 12.0)
"""Distances from the curve tried."""
ROUNDS = 3


@dataclass(frozen=True)
class Label:
    """An edge's title in lines, centred in `rect`."""

    rect: Rect
    lines: tuple[str, ...]


def wrapped(text: str, room: int) -> tuple[str, ...]:
    """The text in lines of at most `room` characters; longer words stay whole."""
    return tuple(textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=True)) or ("",)


def place_labels(
    titles: Sequence[str], curves: Sequence[Curve], boxes: Sequence[Rect]
) -> tuple[list[Label], bool]:
    """A label for each curve, and whether all of them found free room."""
    choices = [list(_candidates(t, c)) for t, c in zip(titles, curves, strict=True)]
    places = [_corners([label.rect for label, _ in options]) for options in choices]
    tastes = [np.array([taste for _, taste in options]) for options in choices]
    tracks = np.array([curve.points() for curve in curves]).reshape(-1, 2)
    fixed = [
        10 * _covered(place, _corners(boxes), margin=4) + 100 * _crossed(place, tracks, margin=2)
        for place in places
    ]
    chosen: dict[int, int] = {}

    def crowding(index: int) -> NDArray[np.float64]:
        others = [places[i][pick] for i, pick in chosen.items() if i != index]
        return 10 * _covered(places[index], np.array(others).reshape(-1, 4), margin=3)

    order = sorted(range(len(curves)), key=lambda i: _length(curves[i]))
    for _ in range(ROUNDS):
        for index in order:
            cost = fixed[index] + tastes[index] + crowding(index)
            chosen[index] = int(np.argmin(cost))
    is_clear = all((fixed[index] + crowding(index))[pick] == 0 for index, pick in chosen.items())
    return [choices[index][chosen[index]][0] for index in range(len(curves))], is_clear


def _candidates(title: str, curve: Curve) -> Iterator[tuple[Label, float]]:
    """Labels a curve might get, each with how far it is from the ideal one."""
    for lines in dict.fromkeys(wrapped(title, room) for room in ROOMS):
        width = max(map(len, lines)) * 0.6 * LABEL_TEXT
        height = len(lines) * LABEL_LINE
        for place in PLACES:
            (x, y), (along, down) = curve.at(place), curve.direction(place)
            for beside in BESIDE:
                away = (abs(down) * width + abs(along) * height) / 2 + beside
                taste = 40 * abs(place - 0.5) + 2 * beside + 3 * len(lines)
                for side in (1, -1):
                    center = (x + down * side * away, y - along * side * away)
                    rect = Rect(center[0] - width / 2, center[1] - height / 2, width, height)
                    yield Label(rect, lines), taste


def _corners(rects: Sequence[Rect]) -> NDArray[np.float64]:
    """Left, top, right, bottom of each rectangle, [n, 4]."""
    return np.array([(r.left, r.top, r.right, r.bottom) for r in rects]).reshape(-1, 4)


def _covered(
    rects: NDArray[np.float64], others: NDArray[np.float64], margin: float
) -> NDArray[np.float64]:
    """For each of `rects`, grown by `margin`: the area it shares with all the others. [n]"""
    upper = np.minimum(rects[:, None, 2:] + margin, others[None, :, 2:])
    lower = np.maximum(rects[:, None, :2] - margin, others[None, :, :2])
    return np.prod(np.maximum(upper - lower, 0), axis=2).sum(axis=1)


def _crossed(
    rects: NDArray[np.float64], points: NDArray[np.float64], margin: float
) -> NDArray[np.float64]:
    """For each of `rects`, grown by `margin`: how many of the points lie in it. [n]"""
    above = points[None] >= rects[:, None, :2] - margin
    below = points[None] <= rects[:, None, 2:] + margin
    return (above & below).all(axis=2).sum(axis=1).astype(float)


def _length(curve: Curve) -> float:
    (x0, y0), (x1, y1) = curve.start, curve.end
    return ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
