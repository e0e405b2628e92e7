"""A lesson's map drawn once, as SVG and as PNG: an untrusted notebook may not show SVG, and
JupyterLab then falls back to the PNG of the same bundle."""

from __future__ import annotations

import base64
import html
import io
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from course.figure import new_figure, png_of
from course.lessons.content import LessonMap
from course.palette import BLUE, INK, style
from course.shell.map_curves import Curve
from course.shell.map_labels import LABEL_LINE, LABEL_TEXT, wrapped
from course.shell.map_layout import MARGIN, NODE_LINE, NODE_TEXT, Layout, layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PIXEL = 0.72
"""Points in a pixel at 100 pixels an inch, the unit of `map_layout`."""
PAPER = "#ffffff"
TITLE_TEXT, TITLE_LINE = 14.0, 20.0


@lru_cache(maxsize=32)
def map_picture(lesson_map: LessonMap) -> tuple[dict[str, str], dict[str, Any]]:
    """The picture as a MIME bundle, and the metadata to display it with.

    The same map gives the same bytes. Needs matplotlib.
    """
    drawing = layout(lesson_map)
    with style():
        import matplotlib

        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "labkit"})
        head = wrapped(lesson_map.title, int(drawing.width / (0.7 * TITLE_TEXT)))
        height = drawing.height + len(head) * TITLE_LINE + MARGIN
        figure = new_figure(height / 100, drawing.width / 100, constrained=False)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, drawing.width)
        axes.set_ylim(drawing.height, drawing.height - height)
        for index, line in enumerate(reversed(head)):
            _write(axes, (MARGIN, -10 - index * TITLE_LINE), line, TITLE_TEXT, INK, "bold", "left")
        _draw(axes, drawing)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        png = png_of(figure)
    bundle = {
        "image/svg+xml": _named(svg.getvalue(), lesson_map.title),
        "image/png": base64.b64encode(png).decode("ascii"),
        "text/plain": f"Map: {lesson_map.title}",
    }
    return bundle, {"image/png": {"width": round(drawing.width), "alt": lesson_map.title}}


def _draw(axes: Axes, drawing: Layout) -> None:
    from matplotlib.patches import FancyBboxPatch

    for curve in drawing.curves:
        _draw_curve(axes, curve)
    for box in drawing.boxes:
        r = box.rect
        shape = "round,pad=0,rounding_size=7"
        axes.add_patch(
            FancyBboxPatch((r.left, r.top), r.width, r.height, boxstyle=shape, fc=BLUE, ec="none")
        )
        _draw_lines(axes, r.center, box.lines, (NODE_TEXT, NODE_LINE), PAPER, "bold")
    for label in drawing.labels:
        _draw_lines(axes, label.rect.center, label.lines, (LABEL_TEXT, LABEL_LINE), INK, "normal")


def _draw_curve(axes: Axes, curve: Curve) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    corners = [curve.start, curve.control_1, curve.control_2, curve.end]
    path = Path(corners, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    axes.add_patch(PathPatch(path, fc="none", ec=INK, lw=1.6 * PIXEL))
    axes.add_patch(Polygon(arrowhead(curve), closed=True, fc=INK, ec="none"))


def arrowhead(curve: Curve) -> list[tuple[float, float]]:
    """The three corners of the arrowhead at a curve's end."""
    (x, y), (along, down) = curve.end, curve.direction(1.0)
    back_x, back_y = x - 9 * along, y - 9 * down
    return [
        (x, y),
        (back_x - 4 * down, back_y + 4 * along),
        (back_x + 4 * down, back_y - 4 * along),
    ]


def _draw_lines(
    axes: Axes,
    center: tuple[float, float],
    lines: tuple[str, ...],
    sizes: tuple[float, float],
    colour: str,
    weight: str,
) -> None:
    size, leading = sizes
    first = center[1] - leading * (len(lines) - 1) / 2 + 0.35 * size
    for index, line in enumerate(lines):
        _write(axes, (center[0], first + index * leading), line, size, colour, weight, "center")


def _write(
    axes: Axes,
    at: tuple[float, float],
    line: str,
    size: float,
    colour: str,
    weight: str,
    align: Literal["left", "center"],
) -> None:
    axes.text(
        *at,
        line.replace("$", r"\$"),
        ha=align,
        va="baseline",
        fontsize=size * PIXEL,
        color=colour,
        weight=weight,
    )


def _named(svg: str, title: str) -> str:
    """The SVG element alone, with a role and a name for screen readers."""
    element = svg[svg.index("<svg") :]
    name = html.escape(title)
    return element.replace("<svg", f'<svg role="img" aria-label="{name}"', 1)
