"""The gated MLP of the Llama family: `down(silu(gate(x)) * up(x))`.

Gate and up are column parallel and cut at the same columns, so the gating is local; down is row
parallel. One all-reduce per MLP.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.layers.linear import MergedColumnParallelLinear, RowParallelLinear
from labkit.layers.source import WeightSource
from labkit.ranks.comm import Comm


class SwiGLU(nn.Module):
    """The MLP of one decoder layer."""

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        comm: Comm,
        *,
        bias: bool = False,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.gate_up_proj = MergedColumnParallelLinear(
            hidden_size, [intermediate_size] * 2, comm, bias=bias, dtype=dtype, device=device
        )
        self.down_proj = RowParallelLinear(
            intermediate_size, hidden_size, comm, bias=bias, dtype=dtype, device=device
        )

    def load(self, source: WeightSource, name: str) -> None:
        """Read this rank's columns of the projections under `name` (`model.layers.0.mlp`)."""
        self.gate_up_proj.load(source, f"{name}.gate_proj", f"{name}.up_proj")
        self.down_proj.load(source, f"{name}.down_proj")

    def forward(self, x_BTD: Tensor) -> Tensor:
        """x `[..., D]` -> `[..., D]`, whole on every rank."""
        gate, up = self.gate_up_proj(x_BTD).chunk(2, dim=-1)
        return self.down_proj(F.silu(gate) * up)
