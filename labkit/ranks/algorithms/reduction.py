"""What the algorithms do on one rank: copy, cut into chunks, reduce one tensor into another."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from labkit.ranks.algorithm_record import Record
from labkit.ranks.carriers import CARRIED
from labkit.ranks.checks import check_device
from labkit.ranks.comm import Comm

REDUCTIONS = ("sum", "max", "min")


def begin(
    record: Record | None, algorithm: str, comm: Comm, chunks: int, own: int | None
) -> Record:
    """`record`, or one that nobody reads, at the beginning of a run of `algorithm`.

    `own`: the chunk that has my values before the first step; None: all have.
    """
    record = Record() if record is None else record
    record.begin(algorithm, comm.rank, comm.size, chunks, range(chunks) if own is None else [own])
    return record


def check_reducible(algorithm: str, comm: Comm, x: Tensor, op: str) -> None:
    """`x` lies where `comm` works, and `op` is a reduction that its dtype knows.

    Raises TypeError for what is no tensor, ValueError for the rest.
    """
    check_device(algorithm, x, comm.device)
    if op not in REDUCTIONS:
        raise ValueError(
            f"{algorithm} knows no reduction {op!r}; it knows {', '.join(REDUCTIONS)}, and an "
            f"average is a sum divided by comm.size"
        )
    if x.dtype not in CARRIED | {torch.int16, torch.bool}:
        name = str(x.dtype).removeprefix("torch.")
        raise ValueError(f"{algorithm} cannot reduce {name}; float32, bfloat16 and int64 it can")


def contiguous_copy(x: Tensor) -> Tensor:
    """A copy of `x` whose elements follow one another in memory."""
    return x.detach().clone(memory_format=torch.contiguous_format)


def flat_chunks(x: Tensor, n: int) -> list[Tensor]:
    """Contiguous `x` as `n` chunks (views): sizes differ by one at most, longer ones first."""
    return list(x.view(-1).tensor_split(n))


def reduce_into(mine: Tensor, other: Tensor, op: str) -> None:
    """Reduce `other` into `mine`, element by element, in the dtype of `mine`."""
    if op == "sum":
        mine += other
    else:
        pick = torch.maximum if op == "max" else torch.minimum
        mine.copy_(pick(mine, other))


def reduce_in_rank_order(parts: Sequence[Tensor], op: str) -> Tensor:
    """part 0, then part 1 into it, then part 2: a new tensor.

    bfloat16 and float16 are summed in float32 and rounded once.
    """
    dtype = parts[0].dtype
    is_short = dtype in (torch.bfloat16, torch.float16)
    total = parts[0].to(torch.float32 if is_short else dtype, copy=True)
    for part in parts[1:]:
        reduce_into(total, part, op)
    return total.to(dtype)
