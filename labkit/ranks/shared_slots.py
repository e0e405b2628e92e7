"""The slots of a segment as tensors: whole, in the shape of a message, or cut into pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from labkit.ranks.shared_rounds import Rounds
from labkit.ranks.shared_segment import Segment

Turns = tuple[list[Tensor], list[Tensor]]
"""For each turn, every rank's slot."""


class Slots:
    """Every rank's two slots."""

    def __init__(self, segment: Segment, rounds: Rounds) -> None:
        self.slot_bytes = segment.layout.slot_bytes
        self._segment = segment
        self._rounds = rounds
        self._whole: dict[torch.dtype, Turns] = {}

    def whole(self, dtype: torch.dtype) -> Turns:
        """As many elements of `dtype` as fit."""
        if dtype not in self._whole:
            ranks = range(self._segment.layout.ranks)
            first, second = (
                [self._segment.slot(turn, rank, dtype) for rank in ranks] for turn in (0, 1)
            )
            self._whole[dtype] = first, second
        return self._whole[dtype]

    def shaped(self, shape: Sequence[int], dtype: torch.dtype) -> Turns:
        """Room for one message of this shape, which must fit."""
        count = torch.Size(shape).numel()
        with torch.inference_mode(False):  # in it views are made that only it may write
            first, second = (
                [slot[:count].view(shape) for slot in turn] for turn in self.whole(dtype)
            )
        return first, second

    def pieces(
        self, length: int, dtype: torch.dtype, rows: int = 1
    ) -> Iterator[tuple[int, int, list[Tensor]]]:
        """Cut `length` elements into pieces, `rows` of which fit into a slot together.

        For each, which is a step: start, stop, and every rank's slot, cut to `rows` pieces.
        """
        most = self.slot_bytes // dtype.itemsize // rows
        for start in range(0, length, most):
            stop = min(start + most, length)
            slots = self.whole(dtype)[self._rounds.next_turn()]
            yield start, stop, [slot[: rows * (stop - start)] for slot in slots]
