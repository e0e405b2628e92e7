"""Which tensors went into a sum: how a wrong sum tells what was added, and how often."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor


def summands(value: Any, candidates: Tensor, most: int = 1) -> tuple[int, ...] | None:
    """How often each of `candidates` `[m, ...]` is in the sum `value`.

    The candidates hold whole numbers in float64, drawn at random, so that a sum is exact and has
    one way to come about. Each may be in it up to `most` times. None: `value` is no such sum, or
    is one in several ways.
    """
    if not isinstance(value, Tensor) or value.dtype != candidates.dtype:
        return None
    if value.shape != candidates.shape[1:] or not value.numel():
        return None
    times = _all_times(len(candidates), most)
    sums = times @ candidates.reshape(len(candidates), -1)
    (found,) = (sums == value.flatten()).all(dim=1).nonzero(as_tuple=True)
    if len(found) != 1:
        return None
    return tuple(int(count) for count in times[int(found[0])])


@cache
def _all_times(candidates: int, most: int) -> Tensor:
    """Every way to take each candidate 0 to `most` times: `[(most + 1) ** candidates, ...]`."""
    count = torch.arange(most + 1, dtype=torch.float64)
    return torch.cartesian_prod(*[count] * candidates).reshape(-1, candidates)
