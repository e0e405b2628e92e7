"""A few collectives recorded on H100, A100 and L40S, and what they say of the textbook's model.

The points are an excerpt (captured; `SOURCE` says where from). Never mix implementations or
versions: `recorded` asks for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labkit.plan.collective_presets import (
    COLLECTIVE_PRESETS,
    SOURCE,
    TEXTBOOK_NVLINK,
    CollectivePreset,
)
from labkit.plan.collectives import ring_wire_bytes
from labkit.plan.measured_points import Point
from labkit.plan.recorded_points import POINTS

__all__ = [
    "EAGER",
    "GRAPH",
    "SOURCE",
    "BusBandwidth",
    "Comparison",
    "LaunchCost",
    "Point",
    "bus_bandwidths",
    "compare",
    "launch_costs",
    "recorded",
    "recorded_names",
]

GRAPH = "h100_sxm/vllm_graph/0.19.0/all_reduce"
"""The series that the lesson follows; recorded at every size."""
EAGER = "h100_sxm/vllm_eager/0.19.0/all_reduce"
"""The same kernel, started by the host each time."""


def _series() -> dict[str, tuple[Point, ...]]:
    _, *lines = POINTS.strip().splitlines()
    found: dict[str, list[Point]] = {}
    for line in lines:
        *key, ranks, size, us = line.split("|")
        point = Point(int(ranks), int(size), float(us) * 1e-6)
        found.setdefault("/".join(key), []).append(point)
    return {name: tuple(points) for name, points in found.items()}


_SERIES = _series()


def recorded_names() -> tuple[str, ...]:
    """The series of the excerpt, each the name of a preset."""
    return tuple(_SERIES)


def recorded(name: str = GRAPH, ranks: int | None = None) -> tuple[Point, ...]:
    """The recorded points of one series, of all rank counts or of one, by ranks and size.

    Raises ValueError for a series or a rank count that the excerpt lacks.
    """
    if name not in _SERIES:
        raise ValueError(
            f"the excerpt has no series {name!r}; it has {', '.join(_SERIES)}. The other presets "
            "carry their fits alone"
        )
    points = tuple(point for point in _SERIES[name] if ranks in (None, point.ranks))
    if not points:
        counts = sorted({point.ranks for point in _SERIES[name]})
        raise ValueError(f"{name} was recorded with {counts} ranks, not with {ranks}")
    return points


@dataclass(frozen=True)
class Comparison:
    """One recorded collective beside the textbook's model and the fitted one; seconds."""

    ranks: int
    payload_bytes: int
    recorded_seconds: float
    textbook_seconds: float
    fitted_seconds: float

    @property
    def textbook_error(self) -> float:
        """Relative: 5 where the textbook says six times as long as recorded."""
        return self.textbook_seconds / self.recorded_seconds - 1

    @property
    def fitted_error(self) -> float:
        """Relative, of the fitted model."""
        return self.fitted_seconds / self.recorded_seconds - 1


def compare(
    name: str = GRAPH,
    textbook: CollectivePreset = TEXTBOOK_NVLINK,
    *,
    ranks: int | None = None,
    sizes: Sequence[int] | None = None,
) -> tuple[Comparison, ...]:
    """Recorded points beside both models, by ranks and size; payloads beyond the fit too.

    The fitted model is the preset's one set of parameters for all rank counts where that fits, else
    the one of the rank count. `sizes`: payload bytes to keep; None keeps all.

    Raises ValueError for a series, a rank count or sizes that the excerpt lacks.
    """
    kept = [p for p in recorded(name, ranks) if sizes is None or p.payload_bytes in sizes]
    preset = COLLECTIVE_PRESETS[name]
    if not kept:
        raise ValueError(f"{name} was recorded at none of the sizes {list(sizes or ())}")

    return tuple(
        Comparison(
            ranks=p.ranks,
            payload_bytes=int(p.payload_bytes),
            recorded_seconds=p.seconds,
            textbook_seconds=textbook.model.seconds(p.ranks, p.payload_bytes),
            fitted_seconds=preset.chosen_model(p.ranks).seconds(p.ranks, p.payload_bytes),
        )
        for p in kept
    )


@dataclass(frozen=True)
class LaunchCost:
    """The same all-reduce started by the host each time (eager), and replayed in a CUDA graph."""

    ranks: int
    payload_bytes: int
    eager_seconds: float
    graph_seconds: float

    @property
    def launch_seconds(self) -> float:
        """What the graph saves."""
        return self.eager_seconds - self.graph_seconds


def launch_costs(payload_bytes: int = 1024) -> tuple[LaunchCost, ...]:
    """Eager against graph at one payload, for each recorded rank count.

    Raises ValueError for a payload that was not recorded both ways.
    """
    pairs = []
    for slow in recorded(EAGER):
        fast = [p for p in recorded(GRAPH, slow.ranks) if p.payload_bytes == payload_bytes]
        if slow.payload_bytes == payload_bytes and fast:
            pairs.append(LaunchCost(slow.ranks, payload_bytes, slow.seconds, fast[0].seconds))
    if not pairs:
        sizes = sorted({int(point.payload_bytes) for point in recorded(EAGER)})
        raise ValueError(f"no all-reduce of {payload_bytes} B was recorded both ways; {sizes} were")
    return tuple(pairs)


@dataclass(frozen=True)
class BusBandwidth:
    """Ring wire bytes over seconds: what a link would carry if the all-reduce were a ring."""

    ranks: int
    payload_bytes: int
    bytes_per_second: float


def bus_bandwidths(name: str = GRAPH, ranks: int | None = None) -> tuple[BusBandwidth, ...]:
    """The bus bandwidth of each recorded point of an all-reduce, by ranks and size.

    Raises ValueError for a series or a rank count that the excerpt lacks.
    """
    return tuple(
        BusBandwidth(
            p.ranks, int(p.payload_bytes), ring_wire_bytes(p.payload_bytes, p.ranks) / p.seconds
        )
        for p in recorded(name, ranks)
    )
