"""Collectives over shared memory: fixed order, pieces, mismatches, ranks that die, nothing left."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
import torch
from shared_groups import SLOT_BYTES, with_small_slots
from torch import Tensor

from labkit.ranks import shared_handshake
from labkit.ranks.comm import Comm
from labkit.ranks.fixed_order import reduce_into, wide_dtype
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError
from labkit.ranks.shared_rounds import CollectiveMismatch, CollectiveTimeout, RankLost
from labkit.ranks.shared_segment import (
    Layout,
    make_segment,
    open_segment,
    start_time,
    why_no_segments,
)
from labkit.ranks.shared_signals import Signals

FIT = SLOT_BYTES // 4  # float32 elements of a slot


def uneven(rank: int, count: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers of very different size, whose sum depends on the order."""
    generator = torch.Generator().manual_seed(rank)
    draw = torch.randn(count, generator=generator, dtype=torch.float64)
    return (draw * 10.0 ** (4 * torch.randn(count, generator=generator))).to(dtype)


def in_rank_order(parts: list[Tensor], dtype: torch.dtype) -> Tensor:
    """((x0 + x1) + x2) + ..., in float32 for shorter floats, rounded once."""
    wide = torch.float32 if dtype.itemsize < 4 else dtype
    total = parts[0].to(wide)
    for part in parts[1:]:
        total = total + part.to(wide)
    return total.to(dtype)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_sums_are_made_in_rank_order_whatever_the_size_the_way_and_the_pieces(pool, n, dtype):
    counts = [1, n - 1, 100, FIT - 1, FIT, FIT + 1, 3 * FIT + 5]

    def sums(comm: Comm) -> list[list[Tensor]]:
        one_shot = with_small_slots(comm, math.inf)
        two_shot = with_small_slots(comm, 0)
        whole = [uneven(comm.rank, count, dtype) for count in counts]
        return [
            [group.all_reduce(x.clone()) for x in whole] for group in (comm, one_shot, two_shot)
        ]

    expected = [
        in_rank_order([uneven(rank, count, dtype) for rank in range(n)], dtype) for count in counts
    ]
    for groups in pool(n).run(sums):
        for sizes in groups:
            for got, want in zip(sizes, expected, strict=True):
                assert torch.equal(got, want)


def test_float16_average_neither_overflows_nor_rounds_twice(pool):
    def average(comm: Comm) -> Tensor:
        return comm.all_reduce(torch.tensor([60000.0, 1.0 + comm.rank / 1024]).half(), "avg")

    for got in pool(3).run(average):
        assert got.tolist() == [60000.0, 1.0 + 1 / 1024]


def test_order_is_that_of_the_ranks_also_where_the_result_is_one_of_the_parts():
    parts = [uneven(rank, 50) for rank in range(4)]
    expected = in_rank_order(parts, torch.float32)
    for place in (0, 1):
        mine = [part.clone() for part in parts]
        reduce_into(mine[place], mine, "sum", wide_dtype(torch.float32, "sum", 4))
        assert torch.equal(mine[place], expected)


@pytest.mark.parametrize("n", [2, 3])
def test_every_collective_goes_in_pieces_and_reaches_views(pool, n):
    rows = 2 * FIT // 3 * n

    def run(comm: Comm) -> list[Tensor]:
        small = with_small_slots(comm)
        x = torch.arange(3.0 * rows).view(rows, 3) + 1000 * comm.rank
        splits = [(rank + 1) * rows // 20 for rank in range(comm.size)]
        splits[-1] += rows - sum(splits)
        column = torch.zeros(rows, 2)
        column[:, 1] = comm.rank + 1.0
        small.all_reduce(column[:, 1])
        filled = x.t().contiguous().t() if comm.rank == 1 else torch.zeros(3, rows).t()
        return [
            column,
            small.broadcast(filled, src=1),
            small.all_gather(x, 0),
            small.all_gather(x, 1),
            small.reduce_scatter(x, 0),
            small.reduce_scatter(x.t(), 1, "max"),
            small.all_to_all(x),
            small.all_to_all(x, splits),
        ]

    inputs = [torch.arange(3.0 * rows).view(rows, 3) + 1000 * rank for rank in range(n)]
    total = in_rank_order(inputs, torch.float32)
    splits = [(rank + 1) * rows // 20 for rank in range(n)]
    splits[-1] += rows - sum(splits)
    for rank, got in enumerate(pool(n).run(run)):
        column = torch.zeros(rows, 2)
        column[:, 1] = n * (n + 1) / 2
        expected = [
            column,
            inputs[1],
            torch.cat(inputs),
            torch.cat(inputs, 1),
            total.tensor_split(n)[rank],
            inputs[-1].tensor_split(n)[rank].t(),
            torch.cat([x.tensor_split(n)[rank] for x in inputs]),
            torch.cat([x.split(splits)[rank] for x in inputs]),
        ]
        for mine, want in zip(got, expected, strict=True):
            assert torch.equal(mine, want)


def test_tensors_of_inference_mode_and_with_gradients_take_turns(pool):
    def run(comm: Comm) -> list[float]:
        results = []
        for _ in range(3):
            with torch.inference_mode():
                results.append(comm.all_reduce(torch.ones(5))[0].item())
            weight = torch.ones(5, requires_grad=True)
            results.append(comm.all_gather(weight).sum().item())
            with torch.no_grad():
                results.append(comm.all_reduce(weight)[0].item())
        return results

    assert pool(2).run(run) == [[2.0, 10.0, 2.0] * 3] * 2


def test_ranks_that_call_different_things_all_hear_which_and_can_go_on(pool):
    def run(comm: Comm) -> tuple:
        shared, said = comm.transport, []
        calls = [
            (lambda: shared.all_reduce(torch.ones(4), "sum"), lambda: shared.barrier()),
            (
                lambda: shared.all_reduce(torch.ones(9), "sum"),
                lambda: shared.all_reduce(torch.ones(9).double(), "max"),
            ),
            (
                lambda: shared.broadcast(torch.ones(1), 0),
                lambda: shared.broadcast(torch.ones(1), 1),
            ),
            (
                lambda: shared.all_to_all(torch.ones(3), [1, 1, 1], [1, 1, 1]),
                lambda: shared.all_to_all(torch.ones(3), [2, 1, 0], [2, 1, 0]),
            ),
        ]
        for usual, odd in calls:
            with contextlib.suppress(CollectiveMismatch):
                try:
                    (odd if comm.rank == 1 else usual)()
                except CollectiveMismatch as error:
                    said.append(str(error))
                    raise
        x = torch.ones(2)
        shared.all_reduce(x, "sum")
        return said, x.tolist()

    for said, after in pool(3).run(run):
        assert said == [
            "the ranks called different things: rank 0 all_reduce float32 (4,); rank 1 barrier; "
            "rank 2 all_reduce float32 (4,)",
            "the ranks called different things: rank 0 all_reduce float32 (9,); rank 1 "
            "all_reduce(max) float64 (9,); rank 2 all_reduce float32 (9,)",
            "the ranks called different things: rank 0 broadcast float32 (1,) from rank 0; rank 1 "
            "broadcast float32 (1,) from rank 1; rank 2 broadcast float32 (1,) from rank 0",
            "all_to_all: rank 0 sends 1 rows to rank 1, which expects 2",
        ]
        assert after == [3.0, 3.0]


def test_a_rank_that_was_killed_is_named_by_those_that_wait_for_it():
    def run(comm: Comm) -> None:
        comm.all_reduce(torch.ones(4))
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.all_reduce(torch.ones(4))

    with RankPool(3, backend="gloo", grace=10.0) as own, pytest.raises(RankError) as told:
        own.run(run)
    assert told.value.rank == 1
    for rank in (0, 2):
        report = told.value.reports[rank]
        assert report.error.startswith("RankLost: all_reduce float32 (4,) (number ")
        assert "rank 1 will not come: its process " in report.error
        assert report.consequence == "lost its connection in"


def test_a_wait_ends_at_the_groups_deadline_and_so_does_the_group(pool):
    def run(comm: Comm) -> list[str]:
        shared, _ = shared_handshake.attempt(comm._group, timedelta(seconds=0.3))
        said = []
        for kind in (CollectiveTimeout, RankLost) if comm.rank == 0 else ():
            try:
                shared.all_reduce(torch.ones(4), "sum")
            except kind as error:
                said.append(str(error))
        return said

    late, after = pool(3).run(run)[0]
    assert late == (
        "all_reduce float32 (4,) (number 1 of these ranks): rank 1, rank 2 did not come within "
        "0.3 s, though their processes are alive"
    )
    assert after == (
        "this group cannot go on: all_reduce float32 (4,) (number 1 of these ranks) was left "
        "half-way by CollectiveTimeout"
    )


def test_control_c_ends_a_wait_and_the_others_hear_that_nobody_comes(pool):
    def run(comm: Comm) -> tuple[str, float]:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        shared, _ = shared_handshake.attempt(comm._group)
        started, said = time.monotonic(), "nothing"
        if comm.rank == 0:
            before = signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                shared.barrier()
            except KeyboardInterrupt:
                said = "interrupted"
            signal.signal(signal.SIGALRM, before)
        else:
            time.sleep(0.4)
            shared.barrier()  # rank 0 was there when it was interrupted
            try:
                shared.barrier()
            except RankLost as error:
                said = str(error)
        return said, time.monotonic() - started

    (first, seconds), (second, _) = pool(2).run(run)
    assert first == "interrupted"
    assert seconds < 5
    assert second == (
        "barrier (number 2 of these ranks): rank 0 will not come: it left a collective half-way"
    )


def test_a_forked_process_is_no_rank(pool):
    def run(comm: Comm) -> int:
        child = os.fork()
        if child == 0:
            try:
                comm.transport.barrier()
            except RuntimeError as error:
                os._exit(7 if "not in a process it forked" in str(error) else 1)
            os._exit(2)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        comm.barrier()
        return code

    assert pool(2).run(run) == [7, 7]


def test_threads_of_a_rank_take_turns(pool):
    def run(comm: Comm) -> set[float]:
        seen: set[float] = set()

        def work() -> None:
            for _ in range(50):
                x = torch.ones(3)
                comm.transport.all_reduce(x, "sum")
                seen.update(x.tolist())

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen

    assert pool(2).run(run) == [{2.0}, {2.0}]


def test_groups_give_back_their_memory_and_file_descriptors(pool):
    def run(comm: Comm) -> tuple[int, int]:
        def held() -> tuple[int, int]:
            gc.collect()
            with open("/proc/self/maps") as maps:
                mapped = sum("labkit-collectives" in line for line in maps)
            return len(os.listdir("/proc/self/fd")), mapped

        before = held()
        for _ in range(5):
            comm.over("shared memory").all_reduce(torch.ones(100))
        after = held()
        return after[0] - before[0], after[1] - before[1]

    assert pool(2).run(run) == [(0, 0)] * 2


def test_memory_is_found_by_its_own_ranks_only():
    layout = Layout(2, SLOT_BYTES)
    fd, segment = make_segment(layout)
    try:
        other = open_segment(os.getpid(), fd, segment.nonce, layout)
        segment.slot(1, 1, torch.float32)[3] = 5.0
        assert other.slot(1, 1, torch.float32)[3] == 5.0
        with pytest.raises(OSError, match="is another file"):
            open_segment(os.getpid(), fd, b"x" * 16, layout)
        with pytest.raises(OSError, match="bytes instead of"):
            open_segment(os.getpid(), fd, segment.nonce, Layout(3, SLOT_BYTES))
    finally:
        os.close(fd)
    with pytest.raises(OSError, match="No such file"):
        open_segment(os.getpid(), fd, segment.nonce, layout)


def test_signals_that_come_early_are_counted():
    fd, segment = make_segment(Layout(2, SLOT_BYTES))
    os.close(fd)
    one, other = (Signals(segment.signals, 2, me) for me in (0, 1))
    assert other.missing() == [0]
    one.post_to_all()
    one.post_to_all()
    assert other.missing() == []
    for _ in range(2):
        other.wait_for_all(lambda missing: pytest.fail(f"waits for {missing}"))
    heard = []

    def give_up(missing: list[int]) -> None:
        heard.append(missing)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        other.wait_for_all(give_up)
    assert heard == [[0]]


def test_ranks_on_one_core_part_and_no_one_stays_bound_to_a_core(monkeypatch):
    fd, segment = make_segment(Layout(2, SLOT_BYTES))
    os.close(fd)
    lower, upper = (Signals(segment.signals, 2, me) for me in (0, 1))
    lower._core = upper._core = lambda: 5
    bound: list[set[int]] = []
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {4, 5})
    monkeypatch.setattr("os.sched_setaffinity", lambda _, cores: bound.append(set(cores)))
    assert not upper._leave_shared_core()  # nobody else said where it is
    assert not lower._leave_shared_core()  # the lower one stays
    assert upper._leave_shared_core()
    assert bound == [{4}, {4, 5}]
    assert not upper._leave_shared_core()  # so soon
    upper._moved = 0.0
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {5})
    assert not upper._leave_shared_core()  # it may go nowhere else


def test_ranks_bound_to_different_cores_sum_in_the_same_way(pool):
    """As under numactl: what a rank may run on must not decide how many rounds it waits for."""

    def sums(comm: Comm) -> tuple[bool, list[list[float]]]:
        with pytest.MonkeyPatch.context() as patch:
            cores = {0} if comm.rank == 0 else set(range(64))
            patch.setattr("os.sched_getaffinity", lambda _: cores)
            group = comm.over("shared memory")
        each = [torch.full((count,), 1.0 + comm.rank) for count in (1, 200_000, 200_001, 1)]
        found = [group.all_reduce(x).unique().tolist() for x in each]
        return group.transport._rounds.have_cores, found

    assert pool(3).run(sums) == [(False, [[6.0]] * 4)] * 3


def test_a_process_is_told_from_a_later_one_of_its_id():
    assert start_time(os.getpid()) == start_time(os.getpid())
    child = os.fork()
    if child == 0:
        os._exit(0)
    for _ in range(500):
        if start_time(child) is None:  # a zombie counts as ended
            break
        time.sleep(0.01)
    assert start_time(child) is None
    os.waitpid(child, 0)


def test_a_system_without_such_memory_is_named(monkeypatch):
    assert why_no_segments() == ""
    monkeypatch.setattr("sys.platform", "darwin")
    assert why_no_segments() == "shared memory without a name is Linux's, and this is darwin"
    monkeypatch.undo()
    monkeypatch.delattr("os.memfd_create")
    assert why_no_segments().startswith("this system gives no shared memory (")


def write_inference_tensors(comm: Comm) -> list[list[float]]:
    with torch.inference_mode():
        summed, copied = torch.full((3,), 1.0 + comm.rank), torch.full((3,), 1.0 + comm.rank)
    comm.all_reduce(summed)
    comm.broadcast(copied, src=1)
    return [summed.tolist(), copied.tolist(), comm.all_reduce(torch.ones(3)).tolist()]


def test_a_tensor_of_inference_mode_may_be_written_outside_it(pool: Callable[[int], RankPool]):
    assert pool(2).run(write_inference_tensors) == [[[3.0] * 3, [2.0] * 3, [2.0] * 3]] * 2
