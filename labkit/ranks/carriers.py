"""Which dtype travels in place of one that the backend cannot carry.

gloo and NCCL know float64, float32, float16, bfloat16, int8, uint8, int32 and int64. Everything
else (float8, bool, int16, wider unsigned integers) is moved as its bytes and summed elsewhere.
The choice depends on the dtype alone, so every rank makes the same one.
"""

import torch
from torch import Tensor

CARRIED = frozenset(
    {
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int8,
        torch.uint8,
        torch.int32,
        torch.int64,
    }
)


def as_moved(x: Tensor) -> Tensor:
    """A view of contiguous `x` that backends can move: itself, or its bytes (last dim grows)."""
    if x.dtype in CARRIED:
        return x
    x = x if x.dim() else x.view(1)
    if x.shape[-1] == 1:  # then it may have any stride, and still be contiguous
        x = x.as_strided(x.shape, (*x.stride()[:-1], 1))
    return x.view(torch.uint8)


def sum_dtype(dtype: torch.dtype) -> torch.dtype | None:
    """Where `dtype` is reduced: float8 in float32, int16 in int64, bool in uint8; None: nowhere."""
    if dtype in CARRIED:
        return dtype
    if dtype.is_floating_point:
        return torch.float32
    if dtype in (torch.int16, torch.uint16, torch.uint32):
        return torch.int64
    return torch.uint8 if dtype == torch.bool else None
