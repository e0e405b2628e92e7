"""A decode step under tensor parallelism, as two terms, and what a link's real cost does to it.

    step = weight bytes / (n * memory bandwidth)  +  2 * layers * all-reduce(n, batch * hidden)

The KV cache, the embedding's all-reduce and what a step costs besides are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labkit.plan.collective_presets import CollectivePreset
from labkit.plan.collectives import CostModel
from labkit.plan.decode_sketch import HBM_BANDWIDTH
from labkit.plan.decoder import DecoderSpec
from labkit.plan.model import ModelSpec


@dataclass(frozen=True)
class TPStep:
    """One decode step at one degree; seconds, modelled.

    latency_seconds, transfer_seconds: of all all-reduces of the layers together.
    payload_bytes: of one of them.
    """

    tp: int
    batch: int
    payload_bytes: int
    weight_seconds: float
    latency_seconds: float
    transfer_seconds: float

    @property
    def collective_seconds(self) -> float:
        """All all-reduces of the layers."""
        return self.latency_seconds + self.transfer_seconds

    @property
    def seconds(self) -> float:
        """The step."""
        return self.weight_seconds + self.collective_seconds


def tp_step(
    spec: DecoderSpec | ModelSpec,
    tp: int,
    batch: int,
    model: CostModel,
    *,
    parameters: float | None = None,
    bytes_per_element: int = 2,
    hbm_bandwidth: float = HBM_BANDWIDTH,
) -> TPStep:
    """The decode step of `batch` sequences over `tp` GPUs, where `model` prices an all-reduce.

    parameters: how many weights are read; None counts those of `spec`.

    Raises ValueError for a size below 1.
    """
    sizes = {"tp": tp, "batch": batch, "bytes_per_element": bytes_per_element}
    for name, value in sizes.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    weights = spec.num_parameters if parameters is None else parameters
    payload = batch * spec.hidden_size * bytes_per_element
    terms, calls = model.terms(tp, payload), 2 * spec.num_layers
    return TPStep(
        tp=tp,
        batch=batch,
        payload_bytes=payload,
        weight_seconds=weights * bytes_per_element / (tp * hbm_bandwidth),
        latency_seconds=calls * terms.latency_seconds,
        transfer_seconds=calls * terms.transfer_seconds,
    )


@dataclass(frozen=True)
class LinkSteps:
    """The step at several degrees over one link, in the order asked for."""

    preset: CollectivePreset
    steps: tuple[TPStep, ...]

    @property
    def fastest(self) -> TPStep:
        """The shortest step."""
        return min(self.steps, key=lambda step: step.seconds)

    @property
    def last_gain(self) -> float:
        """How many times as fast the last degree is as the one before it; below 1, slower."""
        *_, before, last = self.steps
        return before.seconds / last.seconds

    @property
    def is_extrapolated(self) -> bool:
        """Whether a payload lies outside what was recorded; assumed links have no range."""
        if self.preset.valid_bytes is None:
            return False
        return not all(self.preset.covers(step.payload_bytes) for step in self.steps)


def compare_links(
    spec: DecoderSpec,
    batch: int,
    presets: Iterable[CollectivePreset],
    *,
    degrees: Sequence[int] = (2, 4, 8),
    parameters: float | None = None,
    hbm_bandwidth: float = HBM_BANDWIDTH,
) -> tuple[LinkSteps, ...]:
    """The step over each link at each degree; only the all-reduce's price differs between links.

    Raises ValueError for fewer than two degrees, a size below 1, or a preset of another collective.
    """
    if len(degrees) < 2:
        raise ValueError(f"degrees are {list(degrees)}; give at least two to compare")
    found = []
    for preset in presets:
        if preset.op != "all_reduce":
            raise ValueError(f"{preset.name} prices {preset.op}; a decode step needs an all_reduce")
        steps = tuple(
            tp_step(
                spec,
                tp,
                batch,
                preset.chosen_model(tp),
                parameters=parameters,
                hbm_bandwidth=hbm_bandwidth,
            )
            for tp in degrees
        )
        found.append(LinkSteps(preset, steps))
    return tuple(found)
