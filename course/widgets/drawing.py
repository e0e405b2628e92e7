"""A matplotlib figure as one image output that shrinks with the page."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from course.figure import WIDTH, png_of
from course.widgets.twin import Bundle

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def image_bundle(figure: Figure, title: str, text: str) -> Bundle:
    """A drawn figure as an output: `title` names it, `text` says the same in words.

    A PNG and no SVG: JupyterLab shrinks the one to a narrow page and cuts the other off.
    """
    data = {
        "image/png": base64.b64encode(png_of(figure)).decode("ascii"),
        "text/plain": f"{title}\n{text}",
    }
    return data, {"image/png": {"width": round(100 * WIDTH), "alt": title}}
