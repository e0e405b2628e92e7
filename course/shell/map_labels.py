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
    tracks = np.array([curve.points() for curve in curves]).reshape(-1, 2)
    candidates = [list(_candidates(t, c)) for t, c in zip(titles, curves, strict=True)]
    order = sorted(range(len(curves)), key=lambda i: _length(curves[i]))
    fixed = [[_fixed_cost(c, boxes, tracks) for c in choices] for choices in candidates]
    placed: dict[int, Label] = {}
    for _ in range(ROUNDS):
        for index in order:
            others = [label.rect for i, label in placed.items() if i != index]
            costs = [
                price + taste + _crowding(label.rect, others)
                for (label, taste), price in zip(candidates[index], fixed[index], strict=True)
            ]
            placed[index] = candidates[index][costs.index(min(costs))][0]
    labels = [placed[index] for index in range(len(curves))]
    is_clear = all(
        not _fixed_cost((label, 0.0), boxes, tracks)
        and not _crowding(label.rect, [v.rect for v in labels if v is not label])
        for label in labels
    )
    return labels, is_clear


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


def _fixed_cost(
    choice: tuple[Label, float], boxes: Sequence[Rect], tracks: NDArray[np.float64]
) -> float:
    covered = sum(choice[0].rect.grown(4).overlap(box) for box in boxes)
    near = choice[0].rect.grown(2)
    x, y = tracks.T
    inside = (x >= near.left) & (x <= near.right) & (y >= near.top) & (y <= near.bottom)
    return 10 * covered + 100 * int(inside.sum())


def _crowding(rect: Rect, others: Sequence[Rect]) -> float:
    return 10 * sum(rect.grown(3).overlap(other) for other in others)


def _length(curve: Curve) -> float:
    (x0, y0), (x1, y1) = curve.start, curve.end
    return ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
