"""All-reduce, reduce-scatter and all-gather round a ring: you only ever talk to your neighbours.

S bytes on each of n ranks are cut into n chunks. In every step each rank sends one chunk to the
rank after it and takes one from the rank before it, so that all links work all the time:

    reduce-scatter   n-1 steps   a chunk picks up one rank's values in each; it ends whole, on
                                 the rank of the same number
    all-gather       n-1 steps   the whole chunks go round once more, and everyone keeps a copy

An all-reduce is one after the other. A rank sends 2 (n-1)/n S bytes, and no algorithm can do with
less; it waits for 2 (n-1) steps, and many can do with fewer. Rings are for large messages.

Where a chunk sets out decides in which order its values are added: chunk c starts on rank c+1. So
the last bits of a sum depend on the chunk that an element falls in (see `order.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from labkit.ranks import checks
from labkit.ranks.algorithm_record import Record
from labkit.ranks.algorithms.reduction import (
    begin,
    check_reducible,
    contiguous_copy,
    flat_chunks,
    reduce_into,
)
from labkit.ranks.comm import Comm


def ring_all_reduce(
    comm: Comm, x: Tensor, *, op: str = "sum", record: Record | None = None
) -> Tensor:
    """Reduce `x` (any shape, equal on all ranks) over the ranks: a new tensor of that shape.

    Cost: 2 (n-1) steps, 2 (n-1)/n S bytes from each rank: `plan.collectives.Ring`.
    """
    check_reducible("ring_all_reduce", comm, x, op)
    total = contiguous_copy(x)
    chunks = flat_chunks(total, comm.size)
    record = begin(record, "ring all-reduce", comm, chunks=comm.size, own=None)
    _reduce_scatter(comm, chunks, op, record)
    _all_gather(comm, chunks, record)
    return total


def ring_reduce_scatter(
    comm: Comm, x: Tensor, *, op: str = "sum", record: Record | None = None
) -> Tensor:
    """Reduce `x` `[rows, ...]` over the ranks and keep part `rank` of its rows: a new tensor.

    The rows are cut as `torch.tensor_split(x, n)` does: lengths differ by one at most.

    Cost: n-1 steps, (n-1)/n S bytes from each rank: `plan.collectives.RingReduceScatter`.
    """
    check_reducible("ring_reduce_scatter", comm, x, op)
    checks.normal_dim("ring_reduce_scatter", x, 0)
    chunks = list(contiguous_copy(x).tensor_split(comm.size))
    record = begin(record, "ring reduce-scatter", comm, chunks=comm.size, own=None)
    _reduce_scatter(comm, chunks, op, record)
    return chunks[comm.rank].clone()


def ring_all_gather(
    comm: Comm, x: Tensor, sizes: Sequence[int] | None = None, *, record: Record | None = None
) -> Tensor:
    """The rows of all ranks' `x` `[rows, ...]`, in rank order: a new tensor.

    `sizes`: how many rows each rank brings, the same on all ranks; None: as many as I do.

    Cost: n-1 steps, (n-1)/n S bytes from each rank, where S is what they end with:
    `plan.collectives.RingAllGather`.
    """
    checks.check_device("ring_all_gather", x, comm.device)
    checks.normal_dim("ring_all_gather", x, 0)
    rows = [x.shape[0]] * comm.size if sizes is None else sizes
    rows = checks.check_splits("sizes", rows, comm.size)
    if rows[comm.rank] != x.shape[0]:
        raise ValueError(
            f"sizes {rows} give rank {comm.rank} {rows[comm.rank]} rows, and its tensor has "
            f"{x.shape[0]}"
        )
    gathered = x.new_empty((sum(rows), *x.shape[1:]))
    chunks = list(gathered.split(rows))
    chunks[comm.rank].copy_(x.detach())
    record = begin(record, "ring all-gather", comm, chunks=comm.size, own=comm.rank)
    _all_gather(comm, chunks, record)
    return gathered


def _reduce_scatter(comm: Comm, chunks: Sequence[Tensor], op: str, record: Record) -> None:
    """Afterwards chunk `rank` is whole; the others hold what they were when they moved on."""
    n, rank = comm.size, comm.rank
    after, before = (rank + 1) % n, (rank - 1) % n
    for step in range(n - 1):
        outgoing = (rank - 1 - step) % n  # mine alone at first, then the one I added to just now
        incoming = (rank - 2 - step) % n
        arrived = torch.empty_like(chunks[incoming])
        comm.send_recv(chunks[outgoing], after, arrived, before)
        reduce_into(chunks[incoming], arrived, op)
        record.step("reduce-scatter").sent(outgoing, after).added(incoming, before)


def _all_gather(comm: Comm, chunks: Sequence[Tensor], record: Record) -> None:
    """Chunk `rank` is there; afterwards all are."""
    n, rank = comm.size, comm.rank
    after, before = (rank + 1) % n, (rank - 1) % n
    for step in range(n - 1):
        outgoing = (rank - step) % n  # my own at first, then the one that came just now
        incoming = (rank - 1 - step) % n
        comm.send_recv(chunks[outgoing], after, chunks[incoming], before)
        record.step("all-gather").sent(outgoing, after).kept(incoming, before)
