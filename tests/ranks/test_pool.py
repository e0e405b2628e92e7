"""RankPool when nothing goes wrong, and what it refuses before it starts anything."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable

import cloudpickle
import numpy as np
import pytest
import torch

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool, run_ranks
from labkit.ranks.rank_ref import RankRefError
from labkit.ranks.report import CallStopped

cloudpickle.register_pickle_by_value(sys.modules[__name__])
MakePool = Callable[[int], RankPool]
SIZES = [1, 2, 3, 4]


@pytest.mark.parametrize("n", SIZES)
def test_every_rank_runs_and_results_come_in_rank_order(pool: MakePool, n: int) -> None:
    def who(comm: Comm, factor: int, *, offset: int) -> tuple[int, int, float]:
        x = torch.full((2, 3), float(comm.rank))
        comm.all_reduce(x)
        return comm.rank * factor + offset, comm.size, x.sum().item()

    total = 6.0 * sum(range(n))
    assert pool(n).run(who, 10, offset=1) == [(10 * r + 1, n, total) for r in range(n)]


def test_lambda_and_closure_work(pool: MakePool) -> None:
    bias = 5
    assert pool(2).run(lambda comm, x: comm.rank + x + bias, 10) == [15, 16]


def test_pool_outlives_calls_and_ranks_are_the_same_processes(pool: MakePool) -> None:
    first = pool(3).run(lambda comm: os.getpid())
    assert len({*first, os.getpid()}) == 4
    assert pool(3).run(lambda comm: os.getpid()) == first


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(6, dtype=torch.bfloat16).reshape(2, 3),
        torch.tensor(3.5),
        torch.empty(0, 4),
        torch.arange(4, dtype=torch.int64)[::2],
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.ones(3, 3).to(torch.float8_e4m3fn),
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.eye(2).to_sparse(),
        torch.tensor(3).expand(1),
        torch.tensor(3.5).expand(1, 1),
    ],
)
def test_tensors_cross_both_ways(pool: MakePool, value: torch.Tensor) -> None:
    for back in pool(2).run(lambda comm, x: x, value):
        assert type(back) is type(value)
        assert (back.dtype, back.shape) == (value.dtype, value.shape)
        assert back.requires_grad == value.requires_grad
        a, b = (x.to_dense().to(torch.complex64) for x in (back, value))
        assert torch.equal(a, b)


def test_view_travels_without_the_rest_of_its_storage(pool: MakePool) -> None:
    row = torch.zeros(1000, 1000)[0]
    (back, _) = pool(2).run(lambda comm, x: x, row)
    assert back.untyped_storage().nbytes() == 4000


def test_arrays_and_large_values_cross(pool: MakePool) -> None:
    big = np.random.default_rng(0).standard_normal(3_000_000)
    assert all(np.array_equal(back, big) for back in pool(2).run(lambda comm, x: x, big))


def test_class_of_the_caller_comes_back_as_that_class(pool: MakePool) -> None:
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    points = pool(2).run(lambda comm: Point(comm.rank))
    assert [type(point) for point in points] == [Point, Point]


def test_progress_reaches_the_caller_while_the_call_runs(pool: MakePool) -> None:
    def work(comm: Comm) -> float:
        comm.report({"step": 1})
        comm.barrier()
        time.sleep(1.0)
        return time.monotonic()

    seen: list[tuple[int, object]] = []
    moments: list[float] = []

    def on_progress(rank: int, value: object) -> None:
        seen.append((rank, value))
        moments.append(time.monotonic())

    ends = pool(2).run(work, on_progress=on_progress)
    assert sorted(seen, key=lambda item: item[0]) == [(0, {"step": 1}), (1, {"step": 1})]
    assert max(moments) < min(ends)
    assert pool(2).run(lambda comm: comm.report(1)) == [None, None]  # nobody listens


def test_error_in_on_progress_is_the_callers_and_stops_the_ranks(pool: MakePool) -> None:
    def work(comm: Comm) -> None:
        comm.report(1)
        time.sleep(60)

    def on_progress(rank: int, value: object) -> None:
        raise KeyError("mine")

    start = time.monotonic()
    with pytest.raises(KeyError, match="mine"):
        pool(2).run(work, on_progress=on_progress)
    assert time.monotonic() - start < 10
    assert pool(2).run(lambda comm: comm.rank) == [0, 1]


def test_call_from_on_progress_is_refused(pool: MakePool) -> None:
    def on_progress(rank: int, value: object) -> None:
        pool(2).run(lambda comm: 1)

    with pytest.raises(RuntimeError, match="on_progress cannot start another"):
        pool(2).run(lambda comm: comm.report(1), on_progress=on_progress)
    assert pool(2).run(lambda comm: comm.rank) == [0, 1]


def test_second_thread_is_refused_and_the_first_call_goes_on(pool: MakePool) -> None:
    started = threading.Event()
    results: list[list[int]] = []

    def work(comm: Comm) -> int:
        comm.report(1)
        time.sleep(0.5)
        return comm.rank

    def first() -> None:
        results.append(pool(2).run(work, on_progress=lambda rank, value: started.set()))

    thread = threading.Thread(target=first)
    thread.start()
    assert started.wait(30)
    with pytest.raises(RuntimeError, match="another thread is using this pool"):
        pool(2).run(lambda comm: 1)
    thread.join(30)
    assert results == [[0, 1]]


@pytest.mark.parametrize("how", ["restart", "close"])
def test_call_in_a_thread_can_be_stopped_from_another(how: str) -> None:
    own = RankPool(2)
    started = threading.Event()
    errors: list[BaseException] = []

    def work(comm: Comm) -> None:
        comm.report(1)
        time.sleep(1000)

    def run() -> None:
        try:
            own.run(work, on_progress=lambda rank, value: started.set())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(30)
    getattr(own, how)()
    thread.join(10)
    assert [type(error) for error in errors] == [CallStopped]
    if how == "restart":
        assert own.run(lambda comm: comm.rank) == [0, 1]
    own.close()


def test_bad_timeout_of_a_call_is_refused_and_the_ranks_go_on(pool: MakePool) -> None:
    pids = pool(2).run(lambda comm: os.getpid())
    with pytest.raises(ValueError, match="timeout of 0; want seconds above 0"):
        pool(2).run(lambda comm: None, timeout=0)
    assert pool(2).run(lambda comm: os.getpid()) == pids


def test_pool_may_be_used_from_a_thread_that_ends(pool: MakePool) -> None:
    own = RankPool(2)
    thread = threading.Thread(target=own.run, args=(lambda comm: comm.rank,))
    thread.start()
    thread.join(60)
    time.sleep(0.2)
    pids = own.run(lambda comm: os.getpid())
    assert own.run(lambda comm: os.getpid()) == pids
    own.close()


# -- what ranks keep ---------------------------------------------------------------------------


def test_put_keeps_each_ranks_own_object(pool: MakePool) -> None:
    def make(comm: Comm) -> list[int]:
        return [comm.rank]

    kept = pool(3).put(make)

    def use(comm: Comm, box: dict[str, list[int]], *, again: list[int]) -> tuple[int, bool]:
        box["x"].append(7)
        return again[0], box["x"] is again

    assert pool(3).run(use, {"x": kept}, again=kept) == [(0, True), (1, True), (2, True)]
    assert pool(3).run(lambda comm: kept) == [[0, 7], [1, 7], [2, 7]]
    doubled = pool(3).put(lambda comm, x: x * 2, kept)
    assert pool(3).run(lambda comm, x: len(x), doubled) == [4, 4, 4]


def test_what_was_put_is_freed_once_the_reference_is_garbage(pool: MakePool) -> None:
    def make(comm: Comm) -> object:
        class Heavy:
            pass

        heavy = Heavy()
        import weakref

        import torch

        torch._labkit_test = weakref.ref(heavy)
        return heavy

    def is_alive(comm: Comm) -> bool:
        import gc

        import torch

        gc.collect()
        return torch._labkit_test() is not None

    kept = pool(2).put(make)
    assert pool(2).run(is_alive) == [True, True]
    del kept
    gc.collect()
    assert pool(2).run(is_alive) == [False, False]


def test_stale_reference_says_what_to_do() -> None:
    with RankPool(1) as own:
        kept = own.put(lambda comm: 1)
        assert repr(kept).endswith("<lambda>)")
        own.restart()
        assert "stale" in repr(kept)
        with pytest.raises(RankRefError, match=r"started new ranks since; make it again"):
            own.run(lambda comm, x: x, kept)
        assert own.run(lambda comm: comm.rank) == [0]


def test_reference_belongs_to_its_pool(pool: MakePool) -> None:
    kept = pool(1).put(lambda comm: 1)
    with pytest.raises(RankRefError, match="pass it to run or put of that pool"):
        pool(2).run(lambda comm, x: x, kept)
    with pytest.raises(RankRefError, match="lives on the ranks"):
        pickle.dumps(kept)


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "kind", "said"),
    [
        (0, ValueError, "0 ranks; want at least 1"),
        (-1, ValueError, "-1 ranks; want at least 1"),
        (True, ValueError, "True ranks; want"),
        (2.5, TypeError, "2.5 is no number of ranks"),
        ("3", TypeError, "'3' is no number of ranks"),
        (None, TypeError, "None is no number of ranks"),
        (10_000, ValueError, "10000 ranks on one machine; the most is 128"),
    ],
)
def test_bad_sizes_are_refused(size: object, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        RankPool(size)  # type: ignore[arg-type]


def test_windows_is_told_about_wsl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(RuntimeError, match="on Windows install WSL"):
        RankPool(2)


def test_numpy_size_is_a_size() -> None:
    assert RankPool(np.int64(2)).size == 2


def test_more_ranks_than_cores_by_far_is_warned_about() -> None:
    with pytest.warns(UserWarning, match=r"128 ranks share \d+ cores"):
        RankPool(128)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": 0}, "timeout of 0; want seconds above 0"),
        ({"timeout": True}, "timeout of True; want seconds above 0"),
        ({"grace": -1}, "grace of -1"),
        ({"stall_timeout": "3"}, "stall_timeout of '3'"),
        ({"threads_per_rank": 0}, "0 threads per rank"),
        ({"backend": "mpi"}, "backend 'mpi' is not known"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RankPool(2, **options)  # type: ignore[arg-type]


@pytest.mark.skipif(torch.cuda.device_count() >= 2, reason="this machine has the GPUs")
def test_nccl_without_gpus_is_refused() -> None:
    with pytest.raises(ValueError, match="nccl wants a GPU for each of 2 ranks; here are"):
        RankPool(2, backend="nccl")


def test_argument_that_cannot_be_pickled_is_named_and_the_ranks_go_on(pool: MakePool) -> None:
    pids = pool(2).run(lambda comm: os.getpid())
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"argument 2 \(lock\) cannot be sent to the ranks"):
        pool(2).run(lambda comm, *a: None, 1, lock)
    with pytest.raises(TypeError, match=r"argument key \(lock\)"):
        pool(2).run(lambda comm, key: None, key=lock)
    with pytest.raises(TypeError, match=r"the function \(function\) cannot be sent"):
        pool(2).run(lambda comm: lock)
    with pytest.raises(TypeError, match="want a function first, not 3"):
        pool(2).run(3)  # type: ignore[arg-type]
    assert pool(2).run(lambda comm: os.getpid()) == pids


def test_closed_pool_says_so() -> None:
    own = RankPool(2)
    own.close()
    own.close()
    with pytest.raises(RuntimeError, match="this pool was closed"):
        own.run(lambda comm: 1)


# -- the ranks' surroundings -------------------------------------------------------------------


def test_ranks_have_the_callers_directory_environment_and_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("LABKIT_TEST", "yes")
    monkeypatch.chdir(str(tmp_path))

    def look(comm: Comm) -> tuple[str, str | None, list[str]]:
        return os.getcwd(), os.environ.get("LABKIT_TEST"), sys.path

    assert run_ranks(look, 2) == [(os.getcwd(), "yes", sys.path)] * 2


def test_module_written_after_the_ranks_started_is_found(
    pool: MakePool, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    pool(2).run(lambda comm: None)
    with open(f"{tmp_path}/written_later.py", "w") as file:
        file.write("def f(comm):\n    return 'found'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import written_later  # type: ignore[import-not-found]

    assert pool(2).run(written_later.f) == ["found", "found"]


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_per_rank(threads: int) -> None:
    def count(comm: Comm) -> tuple[int, str | None, str | None]:
        policy = os.environ.get("OMP_WAIT_POLICY")
        return torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS"), policy

    with RankPool(1, threads_per_rank=threads) as own:
        assert own.run(count) == [(threads, str(threads), "passive")]


def test_check_collectives_has_torch_compare_them() -> None:
    with RankPool(1, check_collectives=True) as own:
        assert own.run(lambda comm: os.environ["TORCH_DISTRIBUTED_DEBUG"]) == ["DETAIL"]


def test_numpy_random_state_differs_between_ranks(pool: MakePool) -> None:
    draws = pool(3).run(lambda comm: float(np.random.random()))
    assert len(set(draws)) == 3


def test_small_calls_are_quick(pool: MakePool) -> None:
    def nothing(comm: Comm) -> None:
        pass

    two = pool(2)
    two.run(nothing)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        two.run(nothing)
        times.append(time.perf_counter() - start)
    assert sorted(times)[10] < 0.005  # about 0.0005 on two free cores
