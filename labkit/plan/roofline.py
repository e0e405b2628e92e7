"""Arithmetic intensity of a step: FLOPs for each byte read, beside what a device can do of both.

Below the ridge (peak FLOPS over memory bandwidth) reading sets the time, above it computing does.
Decode reads every weight for one token a sequence; prefill reads it once for the whole prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.step_work import StageWork, element_bytes, stage_works

if TYPE_CHECKING:
    from labkit.plan.hardware import DeviceSpec


@dataclass(frozen=True)
class Intensity:
    """One step on the busiest rank, over all its pipeline stages.

    flops: of products and of attention. weight_bytes, cache_bytes: read.
    """

    flops: float
    weight_bytes: float
    cache_bytes: float

    @property
    def flops_per_byte(self) -> float:
        """Of all that is read; activations between kernels are left out."""
        return self.flops / (self.weight_bytes + self.cache_bytes)

    def is_compute_bound(self, device: DeviceSpec, dtype: str = "bfloat16") -> bool:
        """Whether computing takes longer than reading, both at the data sheet's rate."""
        return self.flops_per_byte > ridge(device, dtype)


def ridge(device: DeviceSpec, dtype: str = "bfloat16") -> float:
    """FLOPs that a device does in the time it reads a byte."""
    return device.flops(dtype) / device.memory_bandwidth


def decode_intensity(
    model: ModelSpec,
    batch: int,
    context: float,
    layout: Layout | None = None,
    kv_bytes_per_element: float | None = None,
) -> Intensity:
    """Of one token for each of `batch` sequences with `context` tokens each."""
    return _intensity(model, layout or Layout(), batch, 1, context, kv_bytes_per_element)


def prefill_intensity(
    model: ModelSpec,
    prompt_tokens: int,
    batch: int = 1,
    layout: Layout | None = None,
    kv_bytes_per_element: float | None = None,
) -> Intensity:
    """Of `batch` prompts of `prompt_tokens` tokens each."""
    return _intensity(model, layout or Layout(), batch, prompt_tokens, 0, kv_bytes_per_element)


def _intensity(
    model: ModelSpec, layout: Layout, batch: int, prompt: int, context: float, kv: float | None
) -> Intensity:
    for name, value in (("batch", batch), ("prompt_tokens", prompt)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    if context < 0:
        raise ValueError(f"context is {context}; it must be at least 0")
    element = element_bytes(model) if kv is None else kv
    own = batch / layout.dp
    flops = weights = caches = 0.0
    for work in stage_works(model, layout):
        flops += _stage_flops(work, layout, batch, own, prompt, context)
        weights += work.weight_bytes
        for expert in work.experts:
            weights += expert.count * expert.touched(batch * prompt) * expert.bytes_each
        for cache in work.caches:
            kept = cache.kept(context) * cache.elements * element + 2 * cache.state_bytes
            caches += own * kept
    return Intensity(flops, weights, caches)


def _stage_flops(
    work: StageWork, layout: Layout, batch: int, own: float, prompt: int, context: float
) -> float:
    products = own * prompt * sum(flops for _, flops in work.flops) + own * work.head_flops[1]
    for expert in work.experts:
        products += batch * prompt * expert.top_k / layout.ep * expert.count * expert.flops_each
    scores = sum(own * c.looked_at(prompt, context) * c.score_flops for c in work.caches)
    return products + scores
