"""Rotary position embedding, with the ways of stretching it to longer contexts.

Feature `i` of a head and feature `i + head_dim / 2` form a pair, turned by `position * frequency`.
Frequencies fall geometrically from 1; scaling slows some or all of them down.

Shape suffixes: B batch, T tokens, H heads, d head dim, h half of it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from labkit.plan.decoder import DecoderSpec, RopeScaling

Rotation = tuple[Tensor, Tensor]


class RotaryEmbedding(nn.Module):
    """Cosines and sines for a model's positions, worked out once per step for all its layers."""

    def __init__(self, spec: DecoderSpec, *, device: torch.device | str = "cpu") -> None:
        super().__init__()
        self.inv_freq_h, self.attention_factor = _frequencies(spec)
        self.inv_freq_h = self.inv_freq_h.to(device)

    def forward(self, positions_BT: Tensor, dtype: torch.dtype = torch.float32) -> Rotation:
        """positions `[B, T]` -> cosines and signed sines, each `[B, T, 1, d]` in `dtype`."""
        angles = positions_BT[..., None, None].float() * self.inv_freq_h
        cos = angles.cos() * self.attention_factor
        sin = angles.sin() * self.attention_factor
        return torch.cat((cos, cos), dim=-1).to(dtype), torch.cat((-sin, sin), dim=-1).to(dtype)


def apply_rotary(x_BTHd: Tensor, rotation: Rotation) -> Tensor:
    """Turn every pair of features of every head by its angle.

    With the pair `(a, b)`: `(a cos - b sin, b cos + a sin)`. The roll by half a head puts each
    feature's partner beside it; the sign is in the sines.
    """
    cos, signed_sin = rotation
    return x_BTHd * cos + x_BTHd.roll(x_BTHd.shape[-1] // 2, dims=-1) * signed_sin


def _frequencies(spec: DecoderSpec) -> tuple[Tensor, float]:
    """Radians per position of each pair, and the factor on cosines and sines."""
    exponents = torch.arange(0, spec.head_dim, 2, dtype=torch.float32) / spec.head_dim
    inv_freq = 1.0 / (spec.rope_theta**exponents)
    scaling = spec.rope_scaling
    if scaling is None:
        return inv_freq, 1.0
    if scaling.rope_type == "linear":
        return inv_freq / scaling.factor, 1.0
    if scaling.rope_type == "llama3":
        return _llama3(inv_freq, scaling), 1.0
    if scaling.rope_type == "yarn":
        return _yarn(inv_freq, scaling, spec), _yarn_attention_factor(scaling)
    raise ValueError(f"rotary scaling {scaling.rope_type!r}; known: linear, llama3, yarn")


def _llama3(inv_freq: Tensor, scaling: RopeScaling) -> Tensor:
    """Keep waves that turned often in the original context, slow the rare ones, blend between.

    Llama 3.1 model card, `rope_scaling` of type `llama3`.
    """
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    turns = scaling.original_max_position_embeddings * inv_freq / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - keep) * inv_freq / scaling.factor + keep * inv_freq


def _yarn(inv_freq: Tensor, scaling: RopeScaling, spec: DecoderSpec) -> Tensor:
    """Keep frequencies above `beta_fast` turns in the original context, slow those below
    `beta_slow`, with a straight ramp over the pairs between (Peng et al. 2023, arXiv 2309.00071).
    """

    def pair_turning(turns: float) -> float:
        wavelength = scaling.original_max_position_embeddings / (turns * 2 * math.pi)
        return spec.head_dim * math.log(wavelength) / (2 * math.log(spec.rope_theta))

    first = pair_turning(scaling.beta_fast)
    last = pair_turning(scaling.beta_slow)
    if scaling.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, spec.head_dim - 1)
    pairs = torch.arange(spec.head_dim // 2, dtype=torch.float32)
    slowed = ((pairs - first) / max(last - first, 0.001)).clamp(0, 1)
    return slowed * inv_freq / scaling.factor + (1 - slowed) * inv_freq


def _yarn_attention_factor(scaling: RopeScaling) -> float:
    def growth(weight: float) -> float:
        return 0.1 * weight * math.log(scaling.factor) + 1.0 if scaling.factor > 1 else 1.0

    if scaling.attention_factor is not None:
        return scaling.attention_factor
    if scaling.mscale and scaling.mscale_all_dim:
        return growth(scaling.mscale) / growth(scaling.mscale_all_dim)
    return growth(1.0)
