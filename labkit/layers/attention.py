"""Grouped-query attention on this rank's heads.

Queries, keys and values come from one column parallel product, so a rank has whole heads and
attends over them alone. The output projection is row parallel: its all-reduce is the only
message of the layer.

Shape suffixes: B batch, T new tokens, S positions attended to, D hidden size, d head dim,
H query heads, K KV heads, G query heads per KV head (all of this rank).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.layers.kv_cache import LayerCache, Step
from labkit.layers.linear import QKVParallelLinear, RowParallelLinear
from labkit.layers.norm import RMSNorm
from labkit.layers.rope import Rotation, apply_rotary
from labkit.layers.source import WeightSource
from labkit.plan.decoder import DecoderSpec
from labkit.plan.shard import HeadPartition
from labkit.ranks.comm import Comm


class GQAttention(nn.Module):
    """Attention of one decoder layer, with biases and QK-norm where the model has them."""

    def __init__(
        self,
        spec: DecoderSpec,
        comm: Comm,
        heads: HeadPartition,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        device = device or comm.device
        self.head_dim = spec.head_dim
        self.num_heads = len(heads.q_heads(comm.rank))
        self.num_kv_heads = len(heads.kv_heads(comm.rank))
        self.qkv_proj = QKVParallelLinear(
            spec.hidden_size,
            spec.head_dim,
            heads,
            comm,
            bias=spec.qkv_bias,
            dtype=dtype,
            device=device,
        )
        all_q_heads = [heads.q_heads(rank) for rank in range(comm.size)]
        self.o_proj = RowParallelLinear(
            spec.num_heads * spec.head_dim,
            spec.hidden_size,
            comm,
            bias=spec.o_bias,
            in_ranges=[range(h.start * spec.head_dim, h.stop * spec.head_dim) for h in all_q_heads],
            dtype=dtype,
            device=device,
        )
        self.q_norm: RMSNorm | None = None
        self.k_norm: RMSNorm | None = None
        if spec.qk_norm:
            self.q_norm = RMSNorm(spec.head_dim, spec.rms_norm_eps, dtype=dtype, device=device)
            self.k_norm = RMSNorm(spec.head_dim, spec.rms_norm_eps, dtype=dtype, device=device)

    def load(self, source: WeightSource, name: str) -> None:
        """Read this rank's heads of the projections under `name` (`model.layers.0.self_attn`)."""
        self.qkv_proj.load(source, f"{name}.q_proj", f"{name}.k_proj", f"{name}.v_proj")
        self.o_proj.load(source, f"{name}.o_proj")
        if self.q_norm is not None and self.k_norm is not None:
            self.q_norm.load(source, f"{name}.q_norm")
            self.k_norm.load(source, f"{name}.k_norm")

    def forward(self, x_BTD: Tensor, rotation: Rotation, cache: LayerCache, step: Step) -> Tensor:
        """x `[B, T, D]` -> `[B, T, D]`, whole on every rank; keys and values go to the cache."""
        q_BTHd, k_BTKd, v_BTKd = self._project(x_BTD, rotation)
        cache.write(k_BTKd, v_BTKd, step)
        if step.visible is None and x_BTD.shape[1] > 1:
            attended = _fresh_prompt(q_BTHd, k_BTKd, v_BTKd)
        elif x_BTD.shape[1] == 1:
            attended = self._one_token(q_BTHd, cache, step)
        else:
            attended = _chunk(q_BTHd, cache, step)
        return self.o_proj(attended)

    def _project(self, x_BTD: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        num_q, num_kv = self.num_heads, self.num_kv_heads
        qkv = self.qkv_proj(x_BTD).unflatten(-1, (num_q + 2 * num_kv, self.head_dim))
        qk, v_BTKd = qkv.split([num_q + num_kv, num_kv], dim=2)
        if self.q_norm is not None and self.k_norm is not None:
            qk = torch.cat((self.q_norm(qk[:, :, :num_q]), self.k_norm(qk[:, :, num_q:])), dim=2)
        q_BTHd, k_BTKd = apply_rotary(qk, rotation).split([num_q, num_kv], dim=2)
        return q_BTHd, k_BTKd, v_BTKd

    def _one_token(self, q_B1Hd: Tensor, cache: LayerCache, step: Step) -> Tensor:
        """One new token per sequence: the G query heads of a KV head are its query rows."""
        q_BKGd = q_B1Hd.reshape(
            -1, self.num_kv_heads, self.num_heads // self.num_kv_heads, self.head_dim
        )
        k_BKSd, v_BKSd = cache.read(step)
        out = F.scaled_dot_product_attention(q_BKGd, k_BKSd, v_BKSd, attn_mask=step.visible)
        return out.reshape(-1, 1, self.num_heads * self.head_dim)


def _fresh_prompt(q_BTHd: Tensor, k_BTKd: Tensor, v_BTKd: Tensor) -> Tensor:
    """Nothing cached yet: causal attention among the new tokens. Padding is to the right of
    every real token, so none of those sees it."""
    q, k, v = (x.transpose(1, 2) for x in (q_BTHd, k_BTKd, v_BTKd))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2).flatten(2)


def _chunk(q_BTHd: Tensor, cache: LayerCache, step: Step) -> Tensor:
    """Several new tokens after cached ones."""
    k_BKSd, v_BKSd = cache.read(step)
    q_BHTd = q_BTHd.transpose(1, 2)
    out = F.scaled_dot_product_attention(
        q_BHTd, k_BKSd, v_BKSd, attn_mask=step.visible, enable_gqa=True
    )
    return out.transpose(1, 2).flatten(2)
