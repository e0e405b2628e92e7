"""Seeded numbers for layer tests, and a weight source that notes what is read from it."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from labkit.layers.source import DictSource, Index

RANKS = [1, 2, 3, 4]
BATCHES = [(1,), (5,), (2, 3), (0,), (0, 4)]


def whole_numbers(*shape: int, seed: int) -> Tensor:
    """Whole numbers from -4 to 4 in float64: sums of products are exact in any order."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=generator).double()


def real_numbers(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normally distributed numbers, drawn in float64 and rounded to `dtype`."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def named(name: str, weight: Tensor, bias: Tensor | None = None) -> dict[str, Tensor]:
    """The tensors of one linear layer as a checkpoint names them."""
    return {f"{name}.weight": weight} | ({} if bias is None else {f"{name}.bias": bias})


class NotedSource(DictSource):
    """Remembers how many elements of each tensor were read."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        super().__init__(tensors)
        self.elements_read: dict[str, int] = {}

    def read(self, name: str, *index: Index) -> Tensor:
        part = super().read(name, *index)
        self.elements_read[name] = self.elements_read.get(name, 0) + part.numel()
        return part


def total_read(reads: Iterable[dict[str, int]]) -> dict[str, int]:
    """Elements read of each tensor, over all ranks."""
    total: dict[str, int] = {}
    for read in reads:
        for name, elements in read.items():
            total[name] = total.get(name, 0) + elements
    return total
