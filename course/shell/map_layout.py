"""Where everything on a lesson's map goes: boxes, curves between them, labels beside the curves.

Computed once, so that the picture and the widget show the same drawing. Lengths are CSS pixels at
full size, y grows downwards. Text is measured roughly (0.6 of its size per character, a little
more than the usual fonts need), because the reader's font is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

from course.lessons.content import LessonMap
from course.shell.map_curves import Curve, Rect, between, collisions, loop
from course.shell.map_labels import Label, place_labels, wrapped

NODE_TEXT, NODE_LINE = 13.0, 17.0
PADDING = 9.0
MIN_NODE_WIDTH = 140.0
MARGIN = 8.0
COLUMN_GAPS, ROW_GAPS = (84.0, 100.0, 120.0, 150.0), (52.0, 72.0, 96.0, 124.0)
GAPS = sorted(product(COLUMN_GAPS, ROW_GAPS), key=lambda gaps: 3 * gaps[0] + gaps[1])
"""Space between columns and rows, tried in turn until no label touches anything: narrow first."""


@dataclass(frozen=True)
class Box:
    """A node's box with its title, broken into lines."""

    id: str
    rect: Rect
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """The whole drawing. `curves` and `labels` are in the order of the map's edges."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]
    labels: tuple[Label, ...]
    is_clear: bool
    """Whether no label touches a box, another label or a curve, and no curve a box it passes."""


@lru_cache(maxsize=32)
def layout(lesson_map: LessonMap) -> Layout:
    """The drawing of a map; the closest spacing at which every label finds free room.

    Raises ValueError if two nodes are so close on the grid that their boxes overlap.
    """
    tried = []
    for column_gap, row_gap in GAPS:
        tried.append(_spaced(lesson_map, column_gap, row_gap))
        if tried[-1].is_clear:
            break
    return tried[-1]


def _spaced(lesson_map: LessonMap, column_gap: float, row_gap: float) -> Layout:
    boxes = _boxes(lesson_map, column_gap, row_gap)
    curves = _curves(lesson_map, boxes)
    titles = [edge.title for edge in lesson_map.edges]
    labels, labels_are_clear = place_labels(titles, curves, [box.rect for box in boxes])
    ways_are_clear = not any(
        collisions(curve, [box.rect for box in boxes if box.id not in (edge.source, edge.target)])
        for curve, edge in zip(curves, lesson_map.edges, strict=True)
    )
    rects = [box.rect for box in boxes] + [label.rect for label in labels]
    points = [point for curve in curves for point in curve.points()]
    left = min([r.left for r in rects] + [x for x, _ in points]) - MARGIN
    top = min([r.top for r in rects] + [y for _, y in points]) - MARGIN
    right = max([r.right for r in rects] + [x for x, _ in points]) + MARGIN
    bottom = max([r.bottom for r in rects] + [y for _, y in points]) + MARGIN
    return Layout(
        width=right - left,
        height=bottom - top,
        boxes=tuple(Box(b.id, b.rect.moved(-left, -top), b.lines) for b in boxes),
        curves=tuple(curve.moved(-left, -top) for curve in curves),
        labels=tuple(Label(v.rect.moved(-left, -top), v.lines) for v in labels),
        is_clear=labels_are_clear and ways_are_clear,
    )


def _boxes(lesson_map: LessonMap, column_gap: float, row_gap: float) -> list[Box]:
    words = [word for node in lesson_map.nodes for word in node.title.split()]
    longest = max((0.6 * NODE_TEXT * len(word) for word in words), default=0.0)
    width = max(MIN_NODE_WIDTH, longest + 2 * PADDING)
    room = int((width - 2 * PADDING) / (0.6 * NODE_TEXT))
    lines = [wrapped(node.title, room) for node in lesson_map.nodes]
    height = max(map(len, lines), default=1) * NODE_LINE + 2 * PADDING
    boxes = [
        Box(
            node.id,
            Rect(node.at[0] * (width + column_gap), node.at[1] * (height + row_gap), width, height),
            text,
        )
        for node, text in zip(lesson_map.nodes, lines, strict=True)
    ]
    for one, other in combinations(boxes, 2):
        if one.rect.overlap(other.rect):
            raise ValueError(
                f"map {lesson_map.title!r}: nodes {one.id!r} and {other.id!r} overlap; "
                "in one row, columns must be at least 1 apart"
            )
    return boxes


def _curves(lesson_map: LessonMap, boxes: list[Box]) -> list[Curve]:
    rects = {box.id: box.rect for box in boxes}
    ends = [(edge.source, edge.target) for edge in lesson_map.edges]
    curves = []
    for index, (source, target) in enumerate(ends):
        if source == target:
            curves.append(loop(rects[source]))
            continue
        pair = {source, target}
        twins = [i for i, other in enumerate(ends) if set(other) == pair]
        place = twins.index(index) - (len(twins) - 1) / 2
        side = 1 if source < target else -1  # the same side for both directions of a pair
        others = [rect for name, rect in rects.items() if name not in pair]
        curves.append(between(rects[source], rects[target], others, 40 * place * side))
    return curves
