"""All-reduce by recursive doubling: swap everything with a partner ever twice as far away.

With 4 ranks, who has whose values:

    start           0        1        2        3
    distance 1      0+1      0+1      2+3      2+3
    distance 2      0+1+2+3  0+1+2+3  0+1+2+3  0+1+2+3

log2(n) steps instead of a ring's 2 (n-1), but S bytes in each: for small messages. Partners differ
in one bit of their number, so this works for a power of two. Whoever is beyond the largest one
folds its values into a partner first, sits out, and gets the result at the end.
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


def recursive_doubling_all_reduce(
    comm: Comm, x: Tensor, *, op: str = "sum", record: Record | None = None
) -> Tensor:
    """Reduce `x` (any shape, equal on all ranks) over the ranks: a new tensor of that shape.

    All ranks get the same bits: in each exchange partners add the same two numbers, and a+b = b+a.

    Cost: log2(n) steps of S bytes, and two more where n is no power of two:
    `plan.collectives.RecursiveDoubling`.
    """
    check_reducible("recursive_doubling_all_reduce", comm, x, op)
    record = begin(record, "recursive doubling", comm, chunks=1, own=None)
    rank, total = comm.rank, contiguous_copy(x)
    arrived = torch.empty_like(total)
    power = 1 << (comm.size.bit_length() - 1)  # the largest power of two up to n
    extra = comm.size - power  # ranks beyond it: rank power + r belongs to rank r

    if extra:
        step = record.step("fold in")
        if rank >= power:
            comm.send(total, rank - power)
            step.sent(0, rank - power)
        elif rank < extra:
            comm.recv(arrived, rank + power)
            reduce_into(total, arrived, op)
            step.added(0, rank + power)

    distance = 1
    while distance < power:
        step = record.step("exchange")
        if rank < power:
            partner = rank ^ distance
            comm.send_recv(total, partner, arrived, partner)
            reduce_into(total, arrived, op)
            step.sent(0, partner).added(0, partner)
        distance *= 2

    if extra:
        step = record.step("fold out")
        if rank < extra:
            comm.send(total, rank + power)
            step.sent(0, rank + power)
        elif rank >= power:
            comm.recv(total, rank - power)
            step.kept(0, rank - power)
    return total
