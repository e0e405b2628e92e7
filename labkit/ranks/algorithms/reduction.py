"""What the algorithms do on one rank: copy, cut into chunks, reduce one tensor into another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import torch
from torch import Tensor

from labkit.ranks.algorithm_record import Record
from labkit.ranks.carriers import CARRIED
from labkit.ranks.checks import check_device
from labkit.ranks.comm import Comm

_REDUCED = CARRIED | {torch.int16, torch.bool}
_REDUCE: dict[str, Callable[..., Tensor]] = {
    "sum": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
}


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
    if op not in _REDUCE:
        raise ValueError(
            f"{algorithm} knows no reduction {op!r}; it knows {', '.join(_REDUCE)}, and an "
            f"average is a sum divided by comm.size"
        )
    if x.dtype not in _REDUCED:
        name = str(x.dtype).removeprefix("torch.")
        raise ValueError(f"{algorithm} cannot reduce {name}; float32, bfloat16 and int64 it can")


def contiguous_copy(x: Tensor) -> Tensor:
    """A copy of `x` whose elements follow one another in memory."""
    return x.detach().clone(memory_format=torch.contiguous_format)


def flat_chunks(x: Tensor, n: int) -> list[Tensor]:
    """Contiguous `x` as `n` chunks (views): sizes differ by one at most, longer ones first."""
    return list(x.view(-1).tensor_split(n))


def reduce_into(mine: Tensor, other: Tensor, op: str) -> None:
    """Reduce `other` into `mine`, element by element."""
    _REDUCE[op](mine, other, out=mine)


def reduce_in_rank_order(parts: Sequence[Tensor], op: str) -> Tensor:
    """((part 0 + part 1) + part 2) + ..., element by element: a new tensor.

    bfloat16 and float16 are reduced in float32 and rounded once.
    """
    dtype = parts[0].dtype
    if dtype in (torch.bfloat16, torch.float16):
        return reduce(_REDUCE[op], [part.float() for part in parts]).to(dtype)
    return parts[0].clone() if len(parts) == 1 else reduce(_REDUCE[op], parts)
