"""A lesson's map as the map widget takes it: geometry from the layout, texts from the lesson."""

from __future__ import annotations

from typing import Any

from course.lessons.content import LessonMap, Node
from course.shell.map_curves import Curve, Rect
from course.shell.map_labels import LABEL_LINE, LABEL_TEXT
from course.shell.map_layout import NODE_LINE, NODE_TEXT, layout
from course.shell.map_picture import arrowhead
from course.shell.marks import to_html
from course.shell.static import edge_name, of_edge


def drawing(lesson_map: LessonMap) -> dict[str, Any]:
    """Title, size and items. Each node is followed by the edges that leave it: so go the keys."""
    laid_out = layout(lesson_map)
    items: list[dict[str, Any]] = []
    for node, box in zip(lesson_map.nodes, laid_out.boxes, strict=True):
        items.append(_node(node, box.rect, box.lines))
        for index, edge in enumerate(lesson_map.edges):
            if edge.source == node.id:
                curve, label = laid_out.curves[index], laid_out.labels[index]
                items.append(
                    {
                        "key": f"edge:{index}",
                        "name": edge_name(lesson_map, edge),
                        "facts": [[heading, to_html(text)] for heading, text in of_edge(edge)],
                        "path": _path(curve),
                        "head": " ".join(f"{x:.1f},{y:.1f}" for x, y in arrowhead(curve)),
                        "text": _text(label.rect, label.lines, LABEL_TEXT, LABEL_LINE),
                    }
                )
    return {
        "title": lesson_map.title,
        "width": round(laid_out.width),
        "height": round(laid_out.height),
        "items": items,
    }


def _node(node: Node, rect: Rect, lines: tuple[str, ...]) -> dict[str, Any]:
    return {
        "key": f"node:{node.id}",
        "name": node.title,
        "facts": [["", to_html(node.why)]],
        "box": _frame(rect),
        "text": _text(rect, lines, NODE_TEXT, NODE_LINE),
    }


def _text(rect: Rect, lines: tuple[str, ...], size: float, leading: float) -> dict[str, Any]:
    x, y = rect.center
    first = y - leading * (len(lines) - 1) / 2 + 0.35 * size
    frame = _frame(rect.grown(2))
    return {"x": x, "y": first, "size": size, "leading": leading, "lines": lines, "frame": frame}


def _frame(rect: Rect) -> dict[str, float]:
    return {"x": rect.left, "y": rect.top, "width": rect.width, "height": rect.height}


def _path(curve: Curve) -> str:
    corners = (curve.start, curve.control_1, curve.control_2, curve.end)
    start, *others = (f"{x:.1f},{y:.1f}" for x, y in corners)
    return f"M{start} C{' '.join(others)}"
