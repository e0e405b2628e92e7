"""A matplotlib figure as one image output that shrinks with the page."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from course.widgets.twin import Bundle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.0
"""Inches, at 100 dots each: what fits a notebook's column."""


def new_figure(height: float) -> Figure:
    """An empty figure of the usual width; `height` in inches. Draw inside `palette.style()`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def image_bundle(figure: Figure, title: str, text: str) -> Bundle:
    """A drawn figure as an output: `title` names it, `text` says the same in words.

    A PNG and no SVG: JupyterLab shrinks the one to a narrow page and cuts the other off.
    """
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    data = {
        "image/png": base64.b64encode(png.getvalue()).decode("ascii"),
        "text/plain": f"{title}\n{text}",
    }
    return data, {"image/png": {"width": round(100 * WIDTH), "alt": title}}
