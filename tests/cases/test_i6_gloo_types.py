"""Case I6: what gloo cannot carry, or cannot do, works over it all the same.

gloo refuses int16, the wider unsigned integers and float8 (and once refused bfloat16). In the
oldest torch that the package admits, 2.6, it has no average and no all-to-all of a list; in 2.13 it
has the latter for equal blocks. None of that may reach somebody who works on CPUs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from labkit.ranks.algorithms import all_to_all
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool

Pool = Callable[[int], RankPool]

WIDE = [torch.bfloat16, torch.float16, torch.float32, torch.float64]
NARROW = [torch.float8_e4m3fn, torch.float8_e5m2]
WHOLE = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64]
ALL = [*WIDE, *NARROW, *WHOLE, torch.bool]


def numbers(rows: int, dtype: torch.dtype, rank: int) -> Tensor:
    """0, 1 and 2: their sums over four ranks are exact in every type here."""
    values = (torch.arange(3 * rows).reshape(rows, 3) + rank) % 3
    return values.to(dtype)


def total(rows: int, dtype: torch.dtype, n: int) -> Tensor:
    wide = torch.stack([numbers(rows, dtype, rank).double() for rank in range(n)])
    return wide.sum(0).to(dtype)


def same(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and torch.equal(a.double(), b.double())


def wrong_over_gloo(comm: Comm) -> list[str]:
    gloo, n = comm.over("gloo"), comm.size
    wrong = []
    for dtype in ALL:
        x, whole = numbers(2 * n, dtype, comm.rank), total(2 * n, dtype, n)
        ours, source = slice(2 * comm.rank, 2 * comm.rank + 2), numbers(2 * n, dtype, n - 1)
        splits = [(comm.rank + rank) % 3 for rank in range(n)]
        came = [
            numbers(2 * n, dtype, rank)[sum((rank + r) % 3 for r in range(comm.rank)) :][:count]
            for rank, count in enumerate(splits)
        ]
        checks = {
            "all_reduce": (gloo.all_reduce(x.clone()), whole),
            "reduce_scatter": (gloo.reduce_scatter(x), whole[ours]),
            "all_gather": (
                gloo.all_gather(x),
                torch.cat([numbers(2 * n, dtype, rank) for rank in range(n)]),
            ),
            "broadcast": (gloo.broadcast(x.clone(), n - 1), source),
            "all_to_all": (gloo.all_to_all(x[: sum(splits)], splits), torch.cat(came)),
            "pairwise": (all_to_all(comm, x[: sum(splits)], splits), torch.cat(came)),
        }
        wrong += [f"{op} {dtype}" for op, pair in checks.items() if not same(*pair)]
    return wrong


@pytest.mark.parametrize("n", [2, 3])
def test_every_collective_carries_every_type_over_gloo(pool: Pool, n: int) -> None:
    assert pool(n).run(wrong_over_gloo) == [[]] * n


def averages(comm: Comm) -> list[Tensor]:
    gloo = comm.over("gloo")
    return [gloo.all_reduce(numbers(2, dtype, comm.rank), "avg") for dtype in WIDE]


def test_gloo_averages(pool: Pool) -> None:
    for found in pool(2).run(averages):
        expected = [total(2, dtype, 2) / 2 for dtype in WIDE]
        assert all(map(same, found, expected))


def uneven_blocks(comm: Comm) -> list[list[Tensor]]:
    """A list of blocks, one for each rank: over gloo, and by sends and receives."""
    blocks = [numbers(comm.rank + rank, torch.bfloat16, comm.rank) for rank in range(comm.size)]
    lengths, rows = [len(block) for block in blocks], torch.cat(blocks)
    over_gloo = comm.over("gloo").all_to_all(rows, lengths)
    return [list(found.split(lengths)) for found in (over_gloo, all_to_all(comm, rows, lengths))]


def test_a_list_of_uneven_blocks_goes_through_all_to_all_with_splits(pool: Pool) -> None:
    for rank, ways in enumerate(pool(3).run(uneven_blocks)):
        expected = [numbers(rank + source, torch.bfloat16, source) for source in range(3)]
        for found in ways:
            assert all(map(same, found, expected))
