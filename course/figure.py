"""A matplotlib figure without a window, and its PNG. Needs matplotlib."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.0
"""Inches, at 100 dots each: what fits a notebook's column."""


def new_figure(height: float, width: float = WIDTH, *, constrained: bool = True) -> Figure:
    """An empty figure, in inches. Draw inside `palette.style()`.

    constrained: matplotlib keeps what is drawn from overlapping.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    return figure


def png_of(figure: Figure) -> bytes:
    """The figure as a PNG that names no version, so that the same figure gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
