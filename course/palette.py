"""One palette and one plot style: told apart by colour-blind readers, readable on dark and light.

The colours are four of Okabe and Ito's (https://jfly.uni-koeln.de/color/, 2008), the ones with a
contrast of at least 3:1 against both white and JupyterLab's dark background.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SERIES = (BLUE, VERMILLION, GREEN, PURPLE)
HATCHES = ("", "//", "..", "\\\\")
INK = "#767676"
"""Text, axes and ticks: a grey with a contrast of 4.5:1 on white and 4.2:1 on JupyterLab's dark
background. No one colour reaches 4.5:1 on both."""

STYLE: dict[Any, Any] = {
    "figure.facecolor": "none",
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.25,
    "hatch.color": INK,
    "hatch.linewidth": 0.5,
    "font.size": 10,
}


@contextmanager
def style() -> Iterator[None]:
    """Applies the plot style inside a `with` block. Needs matplotlib."""
    import matplotlib
    from cycler import cycler

    with matplotlib.rc_context({**STYLE, "axes.prop_cycle": cycler(color=SERIES)}):
        yield


def contrast(colour: str, background: str) -> float:
    """Contrast ratio of two `#rrggbb` colours by the WCAG 2 formula, 1 to 21."""
    light, dark = sorted((_luminance(colour), _luminance(background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
