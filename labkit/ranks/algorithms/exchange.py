"""All-to-all as a pairwise exchange: n-1 rounds, each with another peer on either side.

In round d a rank sends to the rank d places after it and takes from the rank d places before it:

    n = 4        rank 0        rank 1        rank 2        rank 3
    round 1      to 1, of 3    to 2, of 0    to 3, of 1    to 0, of 2
    round 2      to 2, of 2    to 3, of 3    to 0, of 0    to 1, of 1
    round 3      to 3, of 1    to 0, of 2    to 1, of 3    to 2, of 0

So nobody has two senders at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from labkit.ranks import checks
from labkit.ranks.algorithm_record import Record
from labkit.ranks.algorithms.reduction import begin
from labkit.ranks.comm import Comm


def rounds(comm: Comm) -> Iterator[tuple[int, int]]:
    """For each round: the rank to send to, and the rank to take from."""
    for distance in range(1, comm.size):
        yield (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size


def all_to_all(
    comm: Comm,
    x: Tensor,
    input_splits: Sequence[int] | None = None,
    output_splits: Sequence[int] | None = None,
    *,
    record: Record | None = None,
) -> Tensor:
    """Send rows `input_splits[r]` of `x` `[rows, ...]` to each rank r; return what arrives.

    The rows that arrive come in rank order, `output_splits[r]` from rank r. Without `input_splits`
    the rows are cut evenly; with them and without `output_splits` the ranks first tell each other
    their counts, by an all-to-all of one number each.

    Cost: n-1 messages, (n-1)/n S bytes from each rank if all blocks are equally long:
    `plan.collectives.AllToAll`. In the record, chunk r of a rank is the block from rank r.
    """
    checks.check_device("all_to_all", x, comm.device)
    checks.normal_dim("all_to_all", x, 0)
    if input_splits is None:
        checks.check_divides("all_to_all", x.shape[0], 0, comm.size)
        sent = [x.shape[0] // comm.size] * comm.size
    else:
        sent = checks.check_splits("input_splits", input_splits, comm.size, x.shape[0])
    if output_splits is None and input_splits is not None:
        output_splits = all_to_all(comm, torch.tensor(sent, device=comm.device)).tolist()
    came = sent if output_splits is None else output_splits
    came = checks.check_splits("output_splits", came, comm.size)
    checks.check_own_split(comm.rank, sent, came)

    result = x.new_empty((sum(came), *x.shape[1:]))
    going, coming = x.detach().split(sent), result.split(came)
    coming[comm.rank].copy_(going[comm.rank])
    record = begin(record, "all-to-all", comm, chunks=comm.size, own=comm.rank)
    for dst, src in rounds(comm):
        comm.send_recv(going[dst], dst, coming[src], src)
        record.step("exchange").sent(comm.rank, dst).kept(src, src)
    return result
