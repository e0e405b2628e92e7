"""One linear layer's weight, in the layout its product reads fastest.

Everything above this file speaks of a weight `[out_features, in_features]`, as checkpoints do.
What is kept here may look different. Decoding reads every weight once per token, so the layout is
chosen by how close a product comes to the read bandwidth while the weights do not fit in caches.
Candidates, measured by `benchmarks/layouts.py` (figures in `benchmarks/results/layouts.json`):

| layout                   | float32                         | bfloat16                        |
|--------------------------|---------------------------------|---------------------------------|
| row-major, `F.linear`    | slowest                         | half the speed at one row       |
| `[in, out]`, `x @ w`     | faster at one row, else no gain | slower at every row count       |
| MKL-packed               | same; fixes the row count       | does not exist                  |
| weighted `embedding_bag` | best at one row, only there     | best at one row where narrow    |
| **oneDNN-blocked**       | near best at one row, else best | best or near best everywhere    |

So there is one rule and no second copy per batch size: oneDNN's blocked layout where it exists,
`F.linear` everywhere else. The price: rows cannot be looked up in a blocked weight, so an LM head
tied to the embedding keeps a copy of its own (its shard of `vocab_size * hidden_size` elements).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

BLOCKED_MIN_ELEMENTS = 1 << 16
"""Below this a weight sits in the caches and oneDNN's fixed cost per call (about 8 us) decides."""


def prefers_blocked(weight_OI: Tensor) -> bool:
    """Whether oneDNN's blocked layout exists for this weight and was measured to be faster."""
    if weight_OI.device.type != "cpu" or weight_OI.numel() < BLOCKED_MIN_ELEMENTS:
        return False
    if weight_OI.dtype not in (torch.float32, torch.bfloat16):
        return False
    if not (torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled):
        return False
    ops = torch.ops.mkldnn
    if not (hasattr(ops, "_reorder_linear_weight") and hasattr(ops, "_linear_pointwise")):
        return False
    if weight_OI.dtype == torch.bfloat16 and not ops._is_mkldnn_bf16_supported():
        return False
    return torch.backends.cpu.get_cpu_capability().startswith("AVX")


class PackedWeight:
    """A weight `[O, I]` and its optional bias `[O]`, owned by one linear layer (inference only)."""

    def __init__(self, weight_OI: Tensor, bias: Tensor | None = None) -> None:
        self.out_features, self.in_features = weight_OI.shape
        self.dtype = weight_OI.dtype
        self.bias = bias
        self.is_blocked = prefers_blocked(weight_OI)
        if self.is_blocked:
            self._weight = torch.ops.mkldnn._reorder_linear_weight(weight_OI.detach().contiguous())
            self._linear = torch.ops.mkldnn._linear_pointwise.default
        else:
            self._weight = weight_OI.detach()

    def matmul(self, x: Tensor) -> Tensor:
        """`x @ weight.T + bias`: x `[..., I]` -> `[..., O]`, with x in the weight's dtype.

        Raises ValueError when x has another number of features or another dtype.
        """
        if x.shape[-1] != self.in_features or x.dtype != self.dtype:
            raise ValueError(
                f"x has {x.shape[-1]} features in {x.dtype}; this weight takes "
                f"{self.in_features} features in {self.dtype}"
            )
        if self.is_blocked:
            return self._linear(x, self._weight, self.bias, "none", [], "")
        return F.linear(x, self._weight, self.bias)

    def unpacked(self) -> Tensor:
        """The weight as a checkpoint has it, `[O, I]`, bit for bit; a copy when it is blocked."""
        return self._weight.to_dense(self.dtype) if self.is_blocked else self._weight

    def __reduce__(self) -> tuple[type, tuple[Tensor, Tensor | None]]:
        """Pickle and copy through the plain layout: a blocked tensor has no storage to share."""
        return type(self), (self.unpacked(), self.bias)

    def __repr__(self) -> str:
        layout = "oneDNN-blocked" if self.is_blocked else "row-major"
        return f"PackedWeight({self.out_features} x {self.in_features}, {self.dtype}, {layout})"
