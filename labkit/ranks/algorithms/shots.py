"""All-reduce in one shot or in two, always summed in rank order.

    one shot    everyone gives all S bytes to everyone, and each rank adds up the n tensors
    two shots   rank r gets chunk r of everyone and adds it up; then it gives the sum to everyone

One step against two, (n-1) S bytes against 2 (n-1)/n S: small messages in one shot, large in two.
That a step stays one step for any n needs links between all ranks, as NVSwitch gives; on a ring of
links, or on one network card, the n-1 messages of a step queue up.

Both add an element's values as ((rank 0 + rank 1) + rank 2) + ..., wherever it stands in the
message. That is the fixed order: an element's sum has the same bits alone and in any message, in
one piece or in many. bfloat16 and float16 are added in float32 and rounded once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.ranks.algorithm_record import Record
from labkit.ranks.algorithms.exchange import rounds
from labkit.ranks.algorithms.reduction import (
    begin,
    check_reducible,
    contiguous_copy,
    flat_chunks,
    reduce_in_rank_order,
)
from labkit.ranks.comm import Comm

TWO_SHOTS_FROM = 2 * 2**20
"""Bytes from which `fixed_order_all_reduce` takes two shots.

Over gloo on one host, three and four ranks began to gain from it between 1 and 4 MiB (measured).
"""


def one_shot_all_reduce(
    comm: Comm, x: Tensor, *, op: str = "sum", record: Record | None = None
) -> Tensor:
    """Reduce `x` (any shape, equal on all ranks) over the ranks: a new tensor of that shape.

    Cost: one step, (n-1) S bytes from each rank: `plan.collectives.OneShot`.
    """
    check_reducible("one_shot_all_reduce", comm, x, op)
    mine = x.detach().contiguous()
    parts = [mine if rank == comm.rank else torch.empty_like(mine) for rank in range(comm.size)]
    step = begin(record, "one-shot all-reduce", comm, chunks=1, own=None).step("exchange")
    for dst, src in rounds(comm):
        comm.send_recv(mine, dst, parts[src], src)
        step.sent(0, dst).added(0, src)
    return reduce_in_rank_order(parts, op)


def two_shot_all_reduce(
    comm: Comm, x: Tensor, *, op: str = "sum", record: Record | None = None
) -> Tensor:
    """Reduce `x` (any shape, equal on all ranks) over the ranks: a new tensor of that shape.

    Cost: two steps, 2 (n-1)/n S bytes from each rank: `plan.collectives.TwoShot`.
    """
    check_reducible("two_shot_all_reduce", comm, x, op)
    record = begin(record, "two-shot all-reduce", comm, chunks=comm.size, own=None)
    total = contiguous_copy(x)
    chunks = flat_chunks(total, comm.size)
    mine = chunks[comm.rank]
    parts = [mine if rank == comm.rank else torch.empty_like(mine) for rank in range(comm.size)]

    step = record.step("reduce-scatter")
    for dst, src in rounds(comm):
        comm.send_recv(chunks[dst], dst, parts[src], src)
        step.sent(dst, dst).added(comm.rank, src)
    mine.copy_(reduce_in_rank_order(parts, op))

    step = record.step("all-gather")
    for dst, src in rounds(comm):
        comm.send_recv(mine, dst, chunks[src], src)
        step.sent(comm.rank, dst).kept(src, src)
    return total


def fixed_order_all_reduce(
    comm: Comm,
    x: Tensor,
    *,
    op: str = "sum",
    two_shots_from: int = TWO_SHOTS_FROM,
    record: Record | None = None,
) -> Tensor:
    """`one_shot_all_reduce`, or `two_shot_all_reduce` from `two_shots_from` bytes.

    Which of them runs changes the time and not one bit.

    Cost: `plan.collectives.OneOrTwoShot`.
    """
    check_reducible("fixed_order_all_reduce", comm, x, op)
    is_large = x.numel() * x.element_size() >= two_shots_from
    run = two_shot_all_reduce if is_large else one_shot_all_reduce
    return run(comm, x, op=op, record=record)
