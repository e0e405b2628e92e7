"""Reductions in rank order: ((x0 + x1) + x2) + ..., element by element, on every rank.

So all ranks get the same bits, whatever the message's size and the pieces it is cut into. float16,
bfloat16 and float8 are added up in float32 and rounded once, at the end.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from labkit.ranks.carriers import CARRIED, sum_dtype

_COMBINE: dict[str, Callable[..., Tensor]] = {
    "sum": torch.add,
    "avg": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
}


def wide_dtype(dtype: torch.dtype, op: str, ranks: int) -> torch.dtype | None:
    """In which dtype `ranks` tensors are combined; None: in their own, at no loss."""
    if dtype in (torch.float16, torch.bfloat16):
        # torch adds two of them in float32 and rounds once anyway.
        is_exact = op in ("max", "min") or (op == "sum" and ranks == 2)
        return None if is_exact else torch.float32
    return None if dtype in CARRIED else sum_dtype(dtype)


def reduce_into(out: Tensor, parts: Sequence[Tensor], op: str, wide: torch.dtype | None) -> None:
    """Reduce `parts`, two or more of one shape and dtype, in this order, into `out`.

    `out` may be one of the first two parts. `wide` is what `wide_dtype` said.
    """
    combine = _COMBINE[op]
    if wide is None:
        combine(parts[0], parts[1], out=out)
        for part in parts[2:]:
            combine(out, part, out=out)
        if op == "avg":
            out /= len(parts)
        return
    if parts[0].dtype == torch.bool and op == "sum":  # "or"
        combine = torch.maximum
    total = parts[0].to(wide)
    for part in parts[1:]:
        combine(total, part.to(wide), out=total)
    if op == "avg":
        total /= len(parts)
    out.copy_(total)
