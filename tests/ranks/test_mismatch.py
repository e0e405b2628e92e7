"""Collectives and messages that complete although the ranks called different things: an error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import cloudpickle
import pytest
import torch

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

Work = Callable[[Comm], object]


@pytest.fixture(scope="module")
def pair() -> Iterator[RankPool]:
    with RankPool(2, timeout=30.0, grace=0.3, stall_timeout=0.5) as pool:
        yield pool


def fails(pool: RankPool, work: Work) -> RankError:
    """The error of a call that fails within seconds on ranks that then work again."""
    start = time.monotonic()
    with pytest.raises(RankError) as caught:
        pool.run(work)
    assert time.monotonic() - start < 8
    assert pool.run(lambda comm: comm.all_reduce(torch.ones(1)).item()) == [2.0, 2.0]
    return caught.value


MISMATCHES: dict[str, tuple[Work, Work, str]] = {
    "all_reduce dtypes": (
        lambda comm: comm.all_reduce(torch.ones(4)),
        lambda comm: comm.all_reduce(torch.ones(4).int()),
        "rank 0 all_reduce float32 (4,); rank 1 all_reduce int32 (4,) (a mismatch of dtypes)",
    ),
    "all_reduce reductions": (
        lambda comm: comm.all_reduce(torch.ones(4)),
        lambda comm: comm.all_reduce(torch.ones(4), "max"),
        "all_reduce float32 (4,); rank 1 all_reduce(max) float32 (4,) (a mismatch of reductions)",
    ),
    "broadcast dtypes": (
        lambda comm: comm.broadcast(torch.ones(4)),
        lambda comm: comm.broadcast(torch.ones(4).int()),
        "rank 1 broadcast int32 (4,) from rank 0 (a mismatch of dtypes)",
    ),
    "broadcast sizes": (
        lambda comm: comm.broadcast(torch.zeros(2)),
        lambda comm: comm.broadcast(torch.zeros(4)),
        "(a mismatch of sizes)",
    ),
    "reduce_scatter dims": (
        lambda comm: comm.reduce_scatter(torch.ones(4, 4), 0),
        lambda comm: comm.reduce_scatter(torch.ones(4, 4), 1),
        "rank 1 reduce_scatter(dim 1) float32 (4, 4)",
    ),
    "message dtypes": (
        lambda comm: comm.send(torch.ones(2), 1),
        lambda comm: comm.recv(torch.ones(2).int(), 0),
        "a mismatch of dtypes in message 1 from rank 0 to rank 1 [world]: "
        "rank 0 sends float32 (2,), rank 1 receives it as int32 (2,)",
    ),
    "message dtypes and sizes": (
        lambda comm: comm.send(torch.ones(2), 1),
        lambda comm: comm.recv(torch.ones(4).int(), 0),
        "a mismatch of dtypes and sizes in message 1",
    ),
    "message too long": (  # gloo aborts the receiver
        lambda comm: comm.send(torch.ones(8), 1),
        lambda comm: comm.recv(torch.ones(4), 0),
        "a mismatch of sizes in message 1",
    ),
    "exchange": (
        lambda comm: comm.send_recv(torch.ones(2), 1, torch.ones(2), 1),
        lambda comm: comm.send_recv(torch.ones(2), 0, torch.ones(2).int(), 0),
        "rank 1 receives it as int32 (2,)",
    ),
    "splits": (
        lambda comm: comm.all_to_all(torch.ones(2, 1), [1, 1], [1, 2]),
        lambda comm: comm.all_to_all(torch.ones(4, 1), [2, 2], [3, 2]),
        "rank 0 sends rank 1 1 rows (input_splits), and rank 1 expects 3 (output_splits)",
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_mismatch_is_an_error_that_names_the_first_one(pair: RankPool, name: str) -> None:
    first, second, said = MISMATCHES[name]

    def work(comm: Comm) -> None:
        (first, second)[comm.rank](comm)

    error = fails(pair, work)
    assert said in str(error).splitlines()[0]
    assert error.rank == 1


def test_mismatch_before_what_is_on_record_is_found_too(pair: RankPool) -> None:
    def work(comm: Comm) -> None:
        comm = comm.over("gloo")  # where only the flight recorder knows
        comm.all_reduce(torch.ones(4), "max" if comm.rank else "sum")
        for _ in range(100):
            comm.barrier()

    said = str(fails(pair, work)).splitlines()[0]
    assert "the ranks called different things among the first 101 collectives of world" in said


def test_what_may_differ_between_ranks_is_no_mismatch(pair: RankPool) -> None:
    def work(comm: Comm) -> list[int]:
        other = 1 - comm.rank
        rows = comm.all_to_all(torch.ones(3 + comm.rank, 2), [1, 2 + comm.rank])
        comm.all_gather(torch.ones(2, 2), dim=comm.rank)
        comm.send_recv(torch.ones(4), other, torch.empty(2, 2), other)
        half = comm.split([[0], [1]], "half")
        for _ in range(comm.rank):
            half.all_reduce(torch.ones(1))
        return list(rows.shape)

    assert pair.run(work) == [[2, 2], [5, 2]]


@pytest.mark.parametrize("n", [10, 40])
def test_one_message_more_expected_than_sent_is_a_deadlock(pair: RankPool, n: int) -> None:
    def work(comm: Comm) -> None:
        for _ in range(n + comm.rank):
            if comm.rank == 0:
                comm.send(torch.ones(1), 1)
            else:
                comm.recv(torch.ones(1), 0)

    error = fails(pair, work)
    assert error.rank == 0
    said = f"rank 0 has returned without answering recv float32 (1,) from rank 0 [world #{n + 1}]"
    assert str(error).startswith(said)


def test_group_used_long_ago_is_remembered(pair: RankPool) -> None:
    def work(comm: Comm) -> None:
        group = comm.split([[0, 1]], "g")
        group.all_reduce(torch.ones(1))
        for _ in range(40):
            comm.all_reduce(torch.ones(1))
        if comm.rank == 0:
            group.all_reduce(torch.ones(1))

    error = fails(pair, work)
    assert error.rank == 1
    assert "without calling all_reduce float32 (1,) [g [0, 1] #2]" in str(error)


def test_two_groups_of_one_name_in_opposite_order(pair: RankPool) -> None:
    def work(comm: Comm) -> None:
        groups = [comm.split([[0, 1]], "g") for _ in range(2)]
        groups[comm.rank].barrier()

    said = str(fails(pair, work)).splitlines()[0]
    assert "rank 0 in barrier [g [0, 1] #1]; rank 1 in barrier [g (2) [0, 1] #1]" in said


def test_long_names_accuse_nobody() -> None:
    def work(comm: Comm) -> float:
        group = comm.split([[0, 1], [2]], "g" * 600)
        if comm.rank == 1:
            time.sleep(1.5)
        return group.all_reduce(torch.ones(1)).item()

    with RankPool(3, stall_timeout=0.3, timeout=30) as pool:
        assert pool.run(work) == [2.0, 2.0, 1.0]
