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
    """The figure as a PNG of at most 64 colours, which notebooks can afford to carry.

    It names no version, so that the same figure gives the same bytes.
    """
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    image = Image.open(drawn)
    fewer = image.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    fewer.save(small, format="png", optimize=True)
    return small.getvalue()
