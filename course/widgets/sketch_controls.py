"""The collective sketch's controls: what they are called, what they stand for, where they start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from course.labels import Label, quantity
from course.widgets.explorer_view import Control
from course.widgets.sketch_links import (
    ALGORITHMS,
    BANDWIDTHS,
    FREE,
    FREE_START,
    HOP_LATENCIES,
    NVLINK,
    PCIE,
    Hop,
    Link,
)

BATCHES = tuple(2**power for power in range(11))
HIDDEN = (1024, 2048, 4096, 5120, 8192, 12288, 16384)
LAYERS = (16, 24, 32, 40, 48, 64, 80, 96, 126)
SIZES = (2, 4, 8, 16)
SCALINGS = tuple(percent / 100 for percent in range(0, 101, 10))

HINT = (
    "A captured or measured link comes with its own algorithm. The two free sliders count where "
    "the link is free."
)
_SLIDERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "batch": ("Batch (sequences)", tuple(f"{batch:,}" for batch in BATCHES)),
    "hidden": ("Hidden size", tuple(f"{size:,}" for size in HIDDEN)),
    "layers": ("Layers", tuple(map(str, LAYERS))),
    "tp": ("GPUs to split over (TP)", tuple(map(str, SIZES))),
    "scaling": ("Compute that divides", tuple(f"{part:.0%}" for part in SCALINGS)),
}
_FREE_SLIDERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "latency": ("Free link: latency of a step", tuple(quantity(t, "s") for t in HOP_LATENCIES)),
    "bandwidth": ("Free link: bandwidth", tuple(quantity(rate, "B/s") for rate in BANDWIDTHS)),
}


@dataclass(frozen=True)
class Position:
    """What the controls say, as values."""

    batch: int
    hidden: int
    layers: int
    tp: int
    scaling: float
    link: Link
    algorithm: str
    hop: Hop | None
    """Of the free link; None over others."""
    overlay: tuple[Link, ...]


class SketchControls:
    """The controls over a menu of links. A choice is control name -> index of its option."""

    def __init__(self, menu: tuple[Link, ...]) -> None:
        self.menu = menu
        usual = (NVLINK, next(link for link in menu if link.label is Label.CAPTURED))
        here = [link for link in menu if link.label is Label.MEASURED]
        self.overlays: tuple[tuple[Link, ...], ...] = ((), usual, *((*usual, it) for it in here))
        overlays = ["nothing", *(" + ".join(o.name for o in some) for some in self.overlays[1:])]
        self.all: tuple[Control, ...] = (
            *_sliders(_SLIDERS),
            Control("link", "Link", "menu", tuple(link.title for link in menu)),
            Control("algorithm", "Algorithm", "menu", tuple(ALGORITHMS)),
            *_sliders(_FREE_SLIDERS),
            Control("overlay", "Lay over it", "menu", tuple(overlays)),
        )

    @property
    def start(self) -> dict[str, int]:
        """Qwen2.5-72B's width and depth over 8 GPUs on a slow link, one sequence."""
        return {
            "batch": 0,
            "hidden": HIDDEN.index(8192),
            "layers": LAYERS.index(80),
            "tp": SIZES.index(8),
            "scaling": len(SCALINGS) - 1,
            "link": self.menu.index(PCIE),
            "algorithm": 0,
            "latency": HOP_LATENCIES.index(FREE_START[0]),
            "bandwidth": BANDWIDTHS.index(FREE_START[1]),
            "overlay": 1,
        }

    def at(self, choice: Mapping[str, int]) -> Position:
        """What a choice stands for."""
        link = self.menu[choice["link"]]
        hop = HOP_LATENCIES[choice["latency"]], BANDWIDTHS[choice["bandwidth"]]
        return Position(
            batch=BATCHES[choice["batch"]],
            hidden=HIDDEN[choice["hidden"]],
            layers=LAYERS[choice["layers"]],
            tp=SIZES[choice["tp"]],
            scaling=SCALINGS[choice["scaling"]],
            link=link,
            algorithm=tuple(ALGORITHMS)[choice["algorithm"]],
            hop=hop if link is FREE else None,
            overlay=self.overlays[choice["overlay"]],
        )

    def in_words(self, choice: Mapping[str, int]) -> str:
        """Where the controls stand, those of a free link left out."""
        left_out = (*_FREE_SLIDERS, "overlay")
        return "; ".join(
            f"{control.label}: {control.options[choice[control.name]]}"
            for control in self.all
            if control.name not in left_out
        )


def _sliders(given: Mapping[str, tuple[str, tuple[str, ...]]]) -> Iterator[Control]:
    for name, (label, options) in given.items():
        yield Control(name, label, "slider", options)
