"""Which dtype travels in place of one that the backend cannot carry.

gloo and NCCL know float64, float32, float16, bfloat16, int8, uint8, int32 and int64. Everything
else (float8, bool, int16, wider unsigned integers) is moved as its bytes and summed in another dtype.
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
_SUMMED_IN_INT64 = (torch.int16, torch.uint16, torch.uint32)


def as_moved(x: Tensor) -> Tensor:
    """A view of contiguous `x` that a backend can move: `x` itself, or its bytes (last dim grows)."""
    if x.dtype in CARRIED:
        return x
    return (x if x.dim() else x.view(1)).view(torch.uint8)


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """Where `dtype` is reduced: float8 in float32, bool in uint8, int16 in int64."""
    if dtype in CARRIED:
        return dtype
    if dtype == torch.bool:
        return torch.uint8
    if dtype.is_floating_point:
        return torch.float32
    if dtype in _SUMMED_IN_INT64:
        return torch.int64
    name = str(dtype).removeprefix("torch.")
    raise TypeError(f"{name} cannot be summed across ranks; float32, bfloat16 and int64 can")
