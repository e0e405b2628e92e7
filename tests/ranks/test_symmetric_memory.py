"""Symmetric memory without a GPU: why it is refused, which kernel it would choose, and the padding.

The kernels themselves have not been run: here they are replaced by sums in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from labkit.ranks import symmetric_memory
from labkit.ranks.pool import RankPool
from labkit.ranks.symmetric_memory import BUFFER_BYTES, SymmetricMemory, attempt, one_shot_bytes

KIB = 2**10


class Rest:
    """Stands for NCCL: notes what it was asked to run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def all_reduce(self, x: Tensor, op: str) -> None:
        self.ran.append(op)


def transport(ranks: int, *, multicast: bool = False) -> SymmetricMemory:
    group: Any = SimpleNamespace(group_name="7", size=lambda: ranks)
    buffer = torch.empty(BUFFER_BYTES, dtype=torch.uint8)
    rest: Any = Rest()
    return SymmetricMemory(group, buffer, multicast, rest)


@pytest.mark.parametrize(
    ("ranks", "multicast", "size", "how"),
    [
        (2, False, 16, "one-shot"),
        (2, True, BUFFER_BYTES, "one-shot"),
        (4, False, 512 * KIB, "one-shot"),
        (4, False, 512 * KIB + 4, "two-shot"),
        (4, True, 512 * KIB + 4, "multimem"),
        (8, False, 256 * KIB, "one-shot"),
        (8, True, 1024 * KIB, "multimem"),
        (16, False, 16, "two-shot"),
        (2, True, BUFFER_BYTES + 4, "nccl"),
        (2, True, 0, "nccl"),
    ],
)
def test_the_kernel_follows_from_size_ranks_and_hardware(ranks, multicast, size, how):
    assert transport(ranks, multicast=multicast).how(size, torch.bfloat16, "sum") == how


@pytest.mark.parametrize(
    ("dtype", "op"), [(torch.float64, "sum"), (torch.int32, "sum"), (torch.float32, "max")]
)
def test_what_the_kernels_do_not_take_goes_to_nccl(dtype, op):
    found = transport(2)
    found.all_reduce(torch.ones(4, dtype=dtype), op)
    rest: Any = found._rest
    assert rest.ran == [op]


def kernels(ranks: int, asked: list[tuple[str, int]]) -> SimpleNamespace:
    """As if every rank held the same: the sum is `ranks` times what this rank put in."""

    def out_of_place(name: str) -> Callable[[Tensor, str, str], Tensor]:
        def run(x: Tensor, op: str, group: str) -> Tensor:
            asked.append((name, x.numel() * x.itemsize))
            assert (op, group) == ("sum", "7")
            return x * ranks

        return run

    def in_place(name: str) -> Callable[[Tensor, str, str], Tensor]:
        return lambda x, op, group: x.copy_(out_of_place(name)(x, op, group))

    return SimpleNamespace(
        one_shot_all_reduce=out_of_place("one-shot"),
        two_shot_all_reduce_=in_place("two-shot"),
        multimem_all_reduce_=in_place("multimem"),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("ranks", "multicast", "numel"), [(2, False, 5), (16, False, 5), (16, True, 33)]
)
def test_tensors_go_through_padded_to_whole_loads(monkeypatch, dtype, ranks, multicast, numel):
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(torch.ops, "symm_mem", kernels(ranks, asked))
    x = torch.arange(2 * numel, dtype=dtype).reshape(numel, 2)[:, 1]
    expected = x * ranks
    found = transport(ranks, multicast=multicast)
    found.all_reduce(x, "sum")
    assert torch.equal(x, expected)
    found.all_reduce(x, "avg")
    assert torch.equal(x, expected)
    for name, size in asked:
        assert name == found.how(numel * dtype.itemsize, dtype, "sum")
        assert size % 16 == 0
        assert 0 <= size - numel * dtype.itemsize < 16


def test_more_ranks_leave_one_shot_sooner():
    limits = [one_shot_bytes(ranks) for ranks in (2, 3, 4, 5, 8, 9)]
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] == 0


def test_on_cpus_it_is_refused_with_why(pool):
    assert (
        pool(2).run(try_it)
        == [(True, "symmetric memory joins GPUs, and these tensors live on cpu")] * 2
    )


def try_it(comm) -> tuple[bool, str]:
    import torch.distributed as dist

    found, reason = attempt(dist.group.WORLD, comm.device)
    return found is None, reason


def test_one_rank_against_it_is_one_for_all(pool: Callable[[int], RankPool]):
    def reasons(comm) -> str:
        import torch.distributed as dist

        mine = "no path to the others" if comm.rank == 1 else ""
        return symmetric_memory._first_reason(dist.group.WORLD, mine)

    assert pool(3).run(reasons) == ["no path to the others"] * 3
