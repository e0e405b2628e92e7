"""One linear layer's weight, in whatever layout its product runs fastest.

Everything above this file speaks of a weight `[out_features, in_features]`, as checkpoints do.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


class PackedWeight:
    """A weight `[O, I]` and its optional bias `[O]`, owned by one linear layer."""

    def __init__(self, weight_OI: Tensor, bias: Tensor | None = None) -> None:
        self._weight_OI = weight_OI
        self._bias = bias

    def matmul(self, x: Tensor) -> Tensor:
        """`x @ weight.T + bias`: x `[..., I]` -> `[..., O]`."""
        return F.linear(x, self._weight_OI, self._bias)

    def unpacked(self) -> Tensor:
        """The weight as the checkpoint has it, `[O, I]`."""
        return self._weight_OI
