"""One rank fails: the error names it, says why, and what every other rank was in; then all is well.

Every test ends with `works_again`: the same pool answers the next call.
"""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator

import cloudpickle
import pytest
import torch
import torch.distributed as dist

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError, RankTimeout

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SIZES = [2, 3, 4]
REDUCE = "all_reduce float32 (4,) [world #2]"


@pytest.fixture(scope="module")
def quick() -> Iterator[Callable[[int], RankPool]]:
    """Pools that lose patience sooner than the default ones."""
    pools: dict[int, RankPool] = {}

    def pool_of(n: int) -> RankPool:
        if n not in pools:
            pools[n] = RankPool(n, timeout=30.0, grace=0.3, stall_timeout=0.5)
        return pools[n]

    yield pool_of
    for pool in pools.values():
        pool.close()


def fails(pool: RankPool, fn: Callable[..., object], **options: float) -> tuple[RankError, str]:
    """The error of a call that fails within seconds on ranks that then work again."""
    start = time.monotonic()
    with pytest.raises(RankError) as caught:
        pool.run(fn, **options)
    assert time.monotonic() - start < 8
    assert [report.rank for report in caught.value.reports] == list(range(pool.size))
    works_again(pool)
    return caught.value, str(caught.value)


def works_again(pool: RankPool) -> None:
    def total(comm: Comm) -> float:
        return comm.all_reduce(torch.ones(1)).item()

    assert pool.run(total) == [float(pool.size)] * pool.size


class OwnError(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"own {a} {b}")


@pytest.mark.parametrize("n", SIZES)
def test_rank_that_raises_is_named_with_its_traceback(quick, n: int) -> None:
    def work(comm: Comm) -> None:
        comm.barrier()
        if comm.rank == 1:
            raise ValueError("boom")
        comm.all_reduce(torch.ones(4))

    error, text = fails(quick(n), work)
    assert error.rank == 1
    assert text.startswith("rank 1 raised ValueError: boom\n")
    assert 'raise ValueError("boom")' in text
    assert f"rank 0 waits in {REDUCE}" in text
    assert "comm.all_reduce(torch.ones(4))" in text
    assert isinstance(error.reports[1].exception, ValueError)
    for rank in set(range(n)) - {1}:
        report = error.reports[rank]
        assert report.state == "waiting"
        assert report.flight.last is not None
        assert (report.flight.last.op, report.flight.last.seq) == ("all_reduce", 2)
        assert "comm.all_reduce(torch.ones(4))" in report.stack


def test_single_rank_raises(quick) -> None:
    def work(comm: Comm) -> float:
        return 1 / 0

    error, text = fails(quick(1), work)
    assert error.rank == 0
    assert "ZeroDivisionError" in text


def test_same_error_on_all_ranks_is_told_once(quick) -> None:
    def work(comm: Comm) -> None:
        undefined  # type: ignore[name-defined]  # noqa: B018, F821

    error, text = fails(quick(3), work)
    assert error.rank == 0
    assert text.count("Traceback") == 1
    assert "rank 1 raised the same" in text
    assert "rank 2 raised the same" in text


def test_first_of_two_different_errors_is_the_culprit(quick) -> None:
    def work(comm: Comm) -> None:
        comm.barrier()
        if comm.rank == 1:
            raise ValueError("first")
        time.sleep(0.2)
        raise KeyError("second")

    error, _ = fails(quick(2), work)
    assert error.rank == 1
    assert error.reports[0].error == "KeyError: 'second'"


def test_cause_of_an_exception_is_shown(quick) -> None:
    def work(comm: Comm) -> None:
        try:
            {}["missing"]
        except KeyError as error:
            raise RuntimeError("outer") from error

    _, text = fails(quick(1), work)
    assert "KeyError: 'missing'" in text
    assert "direct cause" in text


def test_exception_that_cannot_be_unpickled_keeps_its_name_and_traceback(quick) -> None:
    def work(comm: Comm) -> None:
        raise OwnError(1, 2)

    error, text = fails(quick(2), work)
    assert "rank 0 raised OwnError: own 1 2" in text
    assert "raise OwnError(1, 2)" in text
    assert error.reports[0].exception is None


def test_exception_that_cannot_be_pickled_or_printed(quick) -> None:
    class Odd(Exception):
        lock = None

        def __str__(self) -> str:
            raise RuntimeError("no")

        def __reduce__(self) -> str:
            raise TypeError("no")

    def work(comm: Comm) -> None:
        raise Odd

    _, text = fails(quick(1), work)
    assert "rank 0 raised Odd: <its message cannot be printed>" in text


def test_errors_can_be_pickled_and_copied(quick) -> None:
    def work(comm: Comm) -> None:
        if comm.rank == 0:
            time.sleep(60)

    error, text = fails(quick(2), work, timeout=0.5)
    assert isinstance(error, RankTimeout)
    assert isinstance(error, TimeoutError)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (str(other), other.rank, type(other)) == (text, 0, RankTimeout)
        assert len(other.reports) == 2


@pytest.mark.parametrize("n", SIZES)
def test_rank_that_calls_sys_exit(quick, n: int) -> None:
    def work(comm: Comm) -> None:
        if comm.rank == n - 1:
            sys.exit(3)
        comm.all_reduce(torch.ones(4))

    error, text = fails(quick(n), work)
    assert error.rank == n - 1
    assert error.reports[n - 1].state == "exited"
    assert text.startswith(f"rank {n - 1} called sys.exit(3)")
    assert "rank 0 waits in all_reduce float32 (4,) [world #1]" in text


def die(how: str) -> None:
    if how == "os._exit":
        os._exit(7)
    elif how == "os._exit(0)":
        os._exit(0)
    elif how == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "SIGTERM":
        os.kill(os.getpid(), signal.SIGTERM)
    else:
        ctypes.string_at(0)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("how", "said", "code"),
    [
        ("os._exit", "rank 0 ended its process with exit code 7 before it returned", 7),
        ("os._exit(0)", "rank 0 ended its process with exit code 0 before it returned", 0),
        ("SIGKILL", "rank 0 was killed by SIGKILL", -9),
        ("SIGTERM", "rank 0 was killed by SIGTERM", -15),
        ("segfault", "rank 0 was killed by SIGSEGV", -11),
    ],
)
def test_rank_that_dies(quick, n: int, how: str, said: str, code: int) -> None:
    def work(comm: Comm) -> None:
        comm.barrier()
        if comm.rank == 0:
            die(how)
        comm.all_reduce(torch.ones(4))

    error, text = fails(quick(n), work)
    assert error.rank == 0
    assert text.startswith(said)
    assert (error.reports[0].state, error.reports[0].exit_code) == ("died", code)
    for report in error.reports[1:]:
        assert report.flight.last is not None
        assert report.flight.last.describe() == REDUCE
        assert "comm.all_reduce(torch.ones(4))" in report.stack
        assert f"in {REDUCE}" in report.headline()
    if how == "segfault":
        assert "ctypes.string_at(0)" in error.reports[0].stack


def test_rank_that_died_between_calls_is_replaced(quick) -> None:
    (pid, _) = quick(2).run(lambda comm: os.getpid())
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.3)
    works_again(quick(2))


@pytest.mark.parametrize("n", SIZES)
def test_skipped_collective(quick, n: int) -> None:
    def work(comm: Comm) -> None:
        comm.barrier()
        if comm.rank != 1:
            comm.all_reduce(torch.ones(4))

    error, text = fails(quick(n), work)
    assert error.rank == 1
    assert text.startswith(f"rank 1 has returned without calling {REDUCE}, in which rank")
    assert f"rank 0 waits in {REDUCE}" in text
    assert "comm.all_reduce(torch.ones(4))" in text


def test_skipped_collective_that_nobody_waits_for_is_found_at_the_end(quick) -> None:
    def work(comm: Comm) -> None:
        comm = comm.over("gloo")
        comm.barrier()
        if comm.rank == 0:
            dist.broadcast = lambda *args, **kwargs: (
                None
            )  # as if it had left before the others came
            comm.broadcast(torch.ones(4), 0)

    error, text = fails(quick(2), work)
    assert error.rank == 1
    assert "rank 0 called broadcast float32 (4,)" in text
    assert "but rank 1 has returned without calling it" in text


OTHER_CALLS: dict[str, Callable[[Comm], object]] = {
    "broadcast float32 (4,) from rank 0": lambda comm: comm.broadcast(torch.ones(4), 0),
    "barrier": lambda comm: comm.barrier(),
    "all_gather float32 (4,)": lambda comm: comm.all_gather(torch.ones(4)),
    "all_reduce float32 (8,)": lambda comm: comm.all_reduce(torch.ones(8)),
    "all_reduce float64 (4,)": lambda comm: comm.all_reduce(torch.ones(4).double()),
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("said", OTHER_CALLS)
def test_different_collective(quick, n: int, said: str) -> None:
    def work(comm: Comm) -> None:
        comm.barrier()
        if comm.rank == 1:
            OTHER_CALLS[said](comm)
        else:
            comm.all_reduce(torch.ones(4))
        comm.barrier()

    error, text = fails(quick(n), work)
    assert error.rank == 1
    assert text.startswith("the ranks called different things as number 2 of world: ")
    assert f"rank 0 all_reduce float32 (4,); rank 1 {said}" in text


def test_torch_compares_collectives_when_asked_to() -> None:
    def work(comm: Comm) -> None:
        x = torch.ones(4 + comm.rank)
        dist.all_reduce(x)  # straight to torch: no flight record

    with RankPool(2, check_collectives=True, grace=0.3) as pool:
        _, text = fails(pool, work)
    assert "mismatch" in text.lower()


def test_smaller_groups_work_and_fail_alike_when_torch_compares() -> None:
    def work(comm: Comm, skip: bool) -> float:
        pair = comm.split([[0, 1], [2]], "pair")
        if skip and comm.rank == 1:
            return 0.0
        return pair.all_reduce(torch.ones(1)).item()

    with RankPool(3, check_collectives=True, grace=0.3, stall_timeout=0.5) as pool:
        assert pool.run(work, False) == [2.0, 2.0, 1.0]
        error, text = fails(pool, lambda comm: work(comm, True))
    assert error.rank == 1
    assert "rank 0 waits in all_reduce float32 (1,) [pair [0, 1] #1]" in text


@pytest.mark.parametrize("n", SIZES)
def test_receive_ring_is_a_deadlock(quick, n: int) -> None:
    def work(comm: Comm) -> None:
        comm.recv(torch.ones(4), (comm.rank + 1) % comm.size)

    _, text = fails(quick(n), work)
    assert text.startswith("the ranks wait for each other: rank 0 in recv float32 (4,) from rank 1")


def test_long_computation_of_one_rank_is_waited_for(quick) -> None:
    def work(comm: Comm) -> float:
        if comm.rank == 1:
            time.sleep(1.5)  # three times the pool's stall_timeout
        return comm.all_reduce(torch.ones(1)).item()

    assert quick(2).run(work) == [2.0, 2.0]


def spin() -> None:
    while True:
        pass


def sleep_in_python() -> None:
    time.sleep(1000)


def sleep_in_c_with_the_lock() -> None:
    ctypes.PyDLL(None).sleep(1000)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("stuck", [spin, sleep_in_python, sleep_in_c_with_the_lock])
def test_deadline_says_where_each_rank_is(quick, n: int, stuck: Callable[[], None]) -> None:
    def work(comm: Comm) -> None:
        if comm.rank == n - 1:
            stuck()
        comm.all_reduce(torch.ones(4))

    error, text = fails(quick(n), work, timeout=1.0)
    assert isinstance(error, RankTimeout)
    assert error.rank == n - 1
    assert "not finished after 1 s" in text.splitlines()[0]
    assert error.reports[n - 1].state == "running"
    assert f"in {stuck.__name__}" in error.reports[n - 1].stack
    for report in error.reports[:-1]:
        assert report.state == "waiting"
        assert f"rank {report.rank} waits in all_reduce float32 (4,) [world #1]" in text


def test_call_straight_into_torch_shows_its_place(quick) -> None:
    def work(comm: Comm) -> None:
        if comm.rank == 1:
            dist.all_reduce(torch.ones(4))

    _, text = fails(quick(2), work, timeout=1.0)
    assert "dist.all_reduce(torch.ones(4))" in text
    assert "(inside torch.distributed.all_reduce)" in text


def test_stopped_rank_is_ended_too(quick) -> None:
    def work(comm: Comm) -> None:
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        comm.barrier()

    error, _ = fails(quick(2), work, timeout=1.0)
    assert error.rank == 1


def test_result_that_cannot_be_pickled(quick) -> None:
    def work(comm: Comm) -> object:
        return (x for x in range(3))

    _, text = fails(quick(2), work)
    assert "a result of type generator cannot be sent back" in text
    assert "keep it on the ranks with pool.put" in text


def test_function_that_the_ranks_cannot_import(quick, monkeypatch, tmp_path) -> None:
    (tmp_path / "soon_gone.py").write_text("def f(comm):\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import soon_gone

    (tmp_path / "soon_gone.py").unlink()
    _, text = fails(quick(2), soon_gone.f)
    assert "cannot be rebuilt on the rank: ModuleNotFoundError: No module named 'soon_gone'" in text


class Unreadable:
    """Can be pickled on a rank; unpickling it raises, or even tries to exit."""

    def __init__(self, expression: str) -> None:
        self.expression = expression

    def __reduce__(self) -> object:
        return eval, (self.expression,)


@pytest.mark.parametrize(
    ("expression", "why"),
    [("no_such", "NameError: name 'no_such'"), ("__import__('sys').exit(3)", "SystemExit: 3")],
)
@pytest.mark.parametrize("verb", ["returned", "reported"])
def test_value_that_cannot_be_rebuilt_in_the_caller(
    quick, expression: str, why: str, verb: str
) -> None:
    def work(comm: Comm) -> object:
        value = Unreadable(expression) if comm.rank == 1 else 0
        if verb == "reported":
            comm.report(value)
        return value if verb == "returned" else None

    with pytest.raises(RankError) as caught:
        quick(2).run(work, on_progress=lambda rank, value: None)
    works_again(quick(2))
    assert caught.value.rank == 1
    said = str(caught.value)
    assert said.startswith(f"rank 1 {verb} a value that cannot be rebuilt here ({why}")
    assert ("pool.put" if verb == "returned" else "report plain data") in said


def test_exception_that_exits_when_it_is_rebuilt(quick) -> None:
    class Trap(Exception):
        def __reduce__(self) -> object:
            return sys.exit, (5,)

    def work(comm: Comm) -> None:
        raise Trap("sprung")

    error, text = fails(quick(2), work)
    assert "rank 0 raised Trap: sprung" in text
    assert error.reports[0].exception is None


def test_exception_whose_message_interrupts(quick) -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    def work(comm: Comm) -> None:
        raise Rude

    _, text = fails(quick(2), work)
    assert "rank 0 raised Rude: <its message cannot be printed>" in text


def test_traceback_leaves_out_how_torch_calls_a_module(quick) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("inside")

    def work(comm: Comm) -> None:
        Model()(torch.ones(1))

    _, text = fails(quick(2), work)
    assert 'raise ValueError("inside")' in text
    assert "Model()(torch.ones(1))" in text
    assert "_call_impl" not in text


def test_rank_without_end_of_output_is_stopped(quick, monkeypatch) -> None:
    monkeypatch.setattr("labkit.ranks.call._MAX_OUTPUT_BYTES", 1 << 20)

    def work(comm: Comm) -> None:
        while True:
            print("x" * 1000)

    _, text = fails(quick(1), work)
    assert text.startswith("rank 0 printed more than 1 MiB in one call")
