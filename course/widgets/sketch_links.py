"""What the collective sketch offers as link and algorithm, and the cost model of a choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from course.labels import Label, quantity
from labkit.plan.collective_presets import (
    COLLECTIVE_PRESETS,
    TEXTBOOK_NVLINK,
    TEXTBOOK_PCIE,
    CollectivePreset,
)
from labkit.plan.collectives import (
    CostModel,
    OneOrTwoShot,
    OneShot,
    RecursiveDoubling,
    Ring,
    Tree,
    TwoShot,
)

Hop = tuple[float, float]
"""Seconds of a step, and bytes per second: of a link that runs any algorithm."""


def _two_shot(hop_latency: float, bandwidth: float) -> TwoShot:
    return TwoShot(2 * hop_latency, bandwidth)


def _one_or_two_shot(hop_latency: float, bandwidth: float) -> OneOrTwoShot:
    return OneOrTwoShot(OneShot(hop_latency, bandwidth), _two_shot(hop_latency, bandwidth))


ALGORITHMS: Mapping[str, Callable[[float, float], CostModel]] = {
    "ring": Ring,
    "recursive doubling": RecursiveDoubling,
    "tree": Tree,
    "one-shot": OneShot,
    "two-shot": _two_shot,
    "one- or two-shot, the cheaper": _one_or_two_shot,
}
"""Name -> from a link's hop to the model."""
HOP_LATENCIES = (0.5e-6, 1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6)
BANDWIDTHS = (1e9, 2e9, 5e9, 10e9, 25e9, 50e9, 100e9, 200e9, 450e9, 900e9)

FREE_START = (5e-6, 25e9)
"""Where the two sliders of the free link start."""

OFFERED = (
    "h100_sxm/vllm_graph/0.19.0",
    "h100_sxm/vllm_eager/0.19.0",
    "h100_sxm/trtllm/1.3.0rc20",
    "h100_sxm/nccl/2.29.2",
    "a100_sxm/vllm_graph/0.14.0",
    "a100_sxm/vllm_eager/0.14.0",
    "a100_sxm/nccl/2.27.3",
    "l40s/vllm_graph/0.14.0",
    "l40s/vllm_eager/0.14.0",
    "l40s/nccl/2.27.3",
)
"""Of the captured all-reduces, those in the menu; the first stands for its kind."""


@dataclass(frozen=True, eq=False)
class Link:
    """One entry of the link menu, which has one of: a hop, a preset, a model, or the free sliders.

    name: short, for a row or a curve. title: for the menu. label: where its figures are from.
    """

    name: str
    title: str
    label: Label
    hop: Hop | None = None
    preset: CollectivePreset | None = None
    model: CostModel | None = None

    def cost(self, ranks: int, algorithm: str, free: Hop | None) -> CostModel:
        """The model of an all-reduce here. free: the hop of the link that has none itself."""
        if self.preset is not None:
            return self.preset.model_for(ranks)
        hop = self.hop or free
        return self.model or _model(algorithm, *(hop or FREE_START))

    def covers(self, ranks: int, payload_bytes: float) -> bool:
        """Whether a preset has recorded times around there; the others claim nothing."""
        preset = self.preset
        return preset is None or (ranks in preset.by_ranks and preset.covers(payload_bytes))

    def figures(self, ranks: int) -> str:
        """Its label, and how far the figures are off where that is known."""
        error = self.preset.error_for(ranks) if self.preset else None
        off = "" if error is None else f", {error:.0%} off on average"
        return f"{self.label}{off}"


def links(measured: Mapping[str, CostModel] | None = None) -> tuple[Link, ...]:
    """Every entry of the menu. measured: models fitted to this machine's own times, by name."""
    recorded = (COLLECTIVE_PRESETS[f"{name}/all_reduce"] for name in OFFERED)
    here = (
        Link(name, f"{name} ({Label.MEASURED} here)", Label.MEASURED, model=model)
        for name, model in (measured or {}).items()
    )
    return (NVLINK, PCIE, FREE, *map(_captured, recorded), *here)


def _textbook(name: str, preset: CollectivePreset) -> Link:
    ring = preset.model
    assert isinstance(ring, Ring)
    hop, bandwidth = quantity(ring.hop_latency, "s"), quantity(ring.bandwidth, "B/s")
    title = f"{name}: {hop} a step, {bandwidth}"
    return Link(name, title, Label(preset.label), hop=(ring.hop_latency, ring.bandwidth))


def _captured(preset: CollectivePreset) -> Link:
    label, name = Label(preset.label), preset.title.replace(" custom", "")
    return Link(name, f"{name} ({label})", label, preset=preset)


NVLINK = _textbook("textbook NVLink", TEXTBOOK_NVLINK)
PCIE = _textbook("textbook PCIe", TEXTBOOK_PCIE)
FREE = Link("free link", "free: the two sliders below", Label.ASSUMED)


@lru_cache(maxsize=1024)
def _model(algorithm: str, hop_latency: float, bandwidth: float) -> CostModel:
    return ALGORITHMS[algorithm](hop_latency, bandwidth)
