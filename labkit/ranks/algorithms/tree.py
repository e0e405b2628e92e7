"""All-reduce up a binomial tree to rank 0, and down again.

With 6 ranks, upwards (and downwards the same arrows the other way, last ones first):

    distance 1      1 -> 0     3 -> 2     5 -> 4
    distance 2      2 -> 0
    distance 4      4 -> 0

ceil(log2 n) steps each way, for any n. Half of the ranks have nothing to do after the first one,
and rank 0 is never free; a ring has everyone busy, and recursive doubling needs no way down.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.ranks.algorithm_record import Record
from labkit.ranks.algorithms.reduction import (
    begin,
    check_reducible,
    contiguous_copy,
    reduce_into,
)
from labkit.ranks.comm import Comm


def tree_all_reduce(
    comm: Comm, x: Tensor, *, op: str = "sum", record: Record | None = None
) -> Tensor:
    """Reduce `x` (any shape, equal on all ranks) over the ranks: a new tensor of that shape.

    Cost: 2 ceil(log2 n) steps of S bytes: `plan.collectives.Tree`.
    """
    check_reducible("tree_all_reduce", comm, x, op)
    record = begin(record, "tree all-reduce", comm, chunks=1, own=None)
    rank, total = comm.rank, contiguous_copy(x)
    arrived = torch.empty_like(total)
    distances = [1 << level for level in range((comm.size - 1).bit_length())]

    for distance in distances:
        step = record.step("reduce")
        if rank % (2 * distance) == distance:
            comm.send(total, rank - distance)
            step.sent(0, rank - distance)
        elif rank % (2 * distance) == 0 and rank + distance < comm.size:
            comm.recv(arrived, rank + distance)
            reduce_into(total, arrived, op)
            step.added(0, rank + distance)

    for distance in reversed(distances):
        step = record.step("broadcast")
        if rank % (2 * distance) == 0 and rank + distance < comm.size:
            comm.send(total, rank + distance)
            step.sent(0, rank + distance)
        elif rank % (2 * distance) == distance:
            comm.recv(total, rank - distance)
            step.kept(0, rank - distance)
    return total
