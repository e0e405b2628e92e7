"""A lesson's map as the map widget takes it: texts from the lesson, geometry from the layout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from course.lessons.content import Edge, LessonMap, Node
from course.shell.map_curves import Curve, Rect
from course.shell.map_labels import LABEL_LINE, LABEL_TEXT
from course.shell.map_layout import NODE_LINE, NODE_TEXT, Layout, layout
from course.shell.map_picture import arrowhead
from course.shell.marks import to_html
from course.shell.static import edge_name, of_edge

NARROW_ENOUGH = 0.6
"""A narrow drawing wider than this part of the wide one is not worth having."""


def drawing(lesson_map: LessonMap) -> dict[str, Any]:
    """`title`, `items` (what each says) and `layouts` (where each is drawn), widest first.

    Each node is followed by the edges that leave it: in this order keys go through the map.
    """
    order: list[Node | int] = []
    for node in lesson_map.nodes:
        order.append(node)
        order += [i for i, edge in enumerate(lesson_map.edges) if edge.source == node.id]
    wide, narrow = layout(lesson_map), layout(in_one_column(lesson_map))
    layouts = [wide]
    if narrow.is_clear and narrow.width < NARROW_ENOUGH * wide.width:
        layouts.append(narrow)
    return {
        "title": lesson_map.title,
        "items": [_item(lesson_map, thing) for thing in order],
        "layouts": [_geometry(lesson_map, order, drawn) for drawn in layouts],
    }


def in_one_column(lesson_map: LessonMap) -> LessonMap:
    """The map with its nodes one below the other, in their order, for narrow pages."""
    nodes = (replace(node, at=(0.0, float(i))) for i, node in enumerate(lesson_map.nodes))
    return replace(lesson_map, nodes=tuple(nodes))


def _item(lesson_map: LessonMap, thing: Node | int) -> dict[str, Any]:
    if isinstance(thing, Node):
        return {
            "key": f"node:{thing.id}",
            "kind": "Node",
            "name": thing.title,
            "facts": [["", to_html(thing.why)]],
        }
    edge: Edge = lesson_map.edges[thing]
    return {
        "key": f"edge:{thing}",
        "kind": "Edge",
        "name": edge_name(lesson_map, edge),
        "facts": [[heading, to_html(text)] for heading, text in of_edge(edge)],
    }


def _geometry(lesson_map: LessonMap, order: list[Node | int], drawn: Layout) -> dict[str, Any]:
    boxes = {box.id: box for box in drawn.boxes}
    marks: list[dict[str, Any]] = []
    for thing in order:
        if isinstance(thing, Node):
            box = boxes[thing.id]
            text = _text(box.rect, box.lines, NODE_TEXT, NODE_LINE)
            marks.append({"box": _frame(box.rect), "text": text})
        else:
            curve, label = drawn.curves[thing], drawn.labels[thing]
            head = " ".join(f"{x:.1f},{y:.1f}" for x, y in arrowhead(curve))
            text = _text(label.rect, label.lines, LABEL_TEXT, LABEL_LINE)
            marks.append({"path": _path(curve), "head": head, "text": text})
    return {"width": round(drawn.width), "height": round(drawn.height), "marks": marks}


def _text(rect: Rect, lines: tuple[str, ...], size: float, leading: float) -> dict[str, Any]:
    x, y = rect.center
    first = y - leading * (len(lines) - 1) / 2 + 0.35 * size
    frame = _frame(rect.grown(1))
    return {"x": x, "y": first, "size": size, "leading": leading, "lines": lines, "frame": frame}


def _frame(rect: Rect) -> dict[str, float]:
    return {"x": rect.left, "y": rect.top, "width": rect.width, "height": rect.height}


def _path(curve: Curve) -> str:
    corners = (curve.start, curve.control_1, curve.control_2, curve.end)
    start, *others = (f"{x:.1f},{y:.1f}" for x, y in corners)
    return f"M{start} C{' '.join(others)}"
