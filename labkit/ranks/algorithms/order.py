"""Which algorithms give an element's sum the same bits, whatever else is in the message.

Floating-point addition rounds, so (a + b) + c and a + (b + c) may differ in the last bit. Two
numbers have one sum; from three ranks on, the order matters. A ring adds chunk c in the order
c+1, c+2, ..., c: the same element in a longer message, or in one of several pieces, can fall into
another chunk and get another sum. In the other algorithms the order follows from the ranks alone.

The bits differ between algorithms all the same: each has an order of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from labkit.ranks.algorithms.catalogue import ALGORITHMS
from labkit.ranks.algorithms.reduction import reduce_in_rank_order
from labkit.ranks.comm import Comm

AllReduce = Callable[[Comm, Tensor], Tensor]


@dataclass(frozen=True)
class OrderRow:
    """What one way to sum made of the elements in one kind of message.

    algorithm: its title. message: what was around the elements.
    changed: how many elements have other bits than in a message of their own, by this algorithm.
    off_rank_order: how many have other bits than ((rank 0 + rank 1) + rank 2) + ...
    """

    algorithm: str
    message: str
    changed: int
    off_rank_order: int


@dataclass(frozen=True)
class OrderStudy:
    """What `order_study` counted (measured); the same on all ranks."""

    ranks: int
    elements: int
    dtype: str
    rows: tuple[OrderRow, ...]

    def changed(self, algorithm: str) -> int:
        """Of one algorithm's rows, the largest number of changed elements. Raises KeyError."""
        rows = [row.changed for row in self.rows if row.algorithm == algorithm]
        if not rows:
            known = ", ".join(dict.fromkeys(row.algorithm for row in self.rows))
            raise KeyError(f"no rows of {algorithm!r}; there are {known}")
        return max(rows)


def order_study(
    comm: Comm,
    elements: int = 1000,
    *,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> OrderStudy:
    """Sum the same `elements` random numbers in different messages, and count changed bits.

    Every all-reduce of `ALGORITHMS` is tried, then `comm.all_reduce` over its own transport and
    over torch's backend.

    Raises ValueError for fewer than one element.
    """
    if elements < 1:
        raise ValueError(f"{elements} elements leave nothing to compare; take at least 1")
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(comm.size, elements, generator=random).to(dtype)  # of every rank
    around = torch.randn(elements, generator=random).to(dtype).to(comm.device)
    mine = values[comm.rank].to(comm.device)
    in_rank_order = reduce_in_rank_order(list(values.to(comm.device)), "sum")
    rows = []
    for title, run in _all_reduces(comm).items():
        alone = run(comm, mine)
        for message, found in _messages(comm, run, mine, around):
            changed, off = _differing(found, alone), _differing(found, in_rank_order)
            rows.append(OrderRow(title, message, changed, off))
    name = str(dtype).removeprefix("torch.")
    return OrderStudy(comm.size, elements, name, tuple(rows))


def _messages(
    comm: Comm, run: AllReduce, mine: Tensor, around: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """The sums of `mine` in messages of different kinds."""
    size = len(mine)
    few = -(-size // 10)
    yield "alone", run(comm, mine)
    yield f"with {few} more in front", run(comm, torch.cat([around[:few], mine]))[few:]
    yield f"with {size} more behind", run(comm, torch.cat([mine, around]))[:size]
    yield "in two pieces", torch.cat([run(comm, piece) for piece in mine.tensor_split(2)])


def _all_reduces(comm: Comm) -> dict[str, AllReduce]:
    found = {a.title: a.run for a in ALGORITHMS.values() if a.op == "all_reduce"}
    for name in _transports(comm):
        found[f"comm.all_reduce ({name})"] = partial(_carried, comm.over(name))
    return found


def _transports(comm: Comm) -> Iterator[str]:
    """What carries the collectives of `comm`, and torch's backend if that is another."""
    if comm.transport is not None:
        backend = "nccl" if comm.device.type == "cuda" else "gloo"
        yield from {comm.transport.name: None, backend: None}


def _carried(over: Comm, comm: Comm, x: Tensor) -> Tensor:
    return over.all_reduce(x.clone())


def _differing(a: Tensor, b: Tensor) -> int:
    """How many elements have different bits."""
    return int((a.view(_BITS[a.itemsize]) != b.view(_BITS[b.itemsize])).sum())


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
