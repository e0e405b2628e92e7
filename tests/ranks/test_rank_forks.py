"""A rank answers once for each call, whatever its user's code forks or leaves running."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

import cloudpickle
import pytest
import torch
from kernels import is_alive, wait_until

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool

cloudpickle.register_pickle_by_value(sys.modules[__name__])

MakePool = Callable[[int], RankPool]


def total(comm: Comm, x: float) -> float:
    return comm.all_reduce(torch.tensor(x)).item()


def test_fork_that_returns_from_the_function_answers_nothing(pool: MakePool) -> None:
    def fork(comm: Comm) -> int:
        return os.fork()

    children = pool(2).run(fork)
    assert 0 not in children
    assert [pool(2).run(total, float(n)) for n in range(4)] == [[2.0 * n] * 2 for n in range(4)]


@pytest.mark.parametrize(
    ("end", "code"),
    [("return", 0), ("raise", 1), ("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('no')", 1)],
)
def test_fork_ends_as_a_process_of_its_own(
    pool: MakePool, capsys: pytest.CaptureFixture[str], end: str, code: int
) -> None:
    def work(comm: Comm) -> int:
        child = os.fork()
        if child == 0:
            print("words of the child")
            if end == "raise":
                raise ValueError("child trouble")
            if end != "return":
                exec(f"import sys\n{end}")
            return -1
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert pool(2).run(work) == [code, code]
    shown = capsys.readouterr().out
    assert shown.count("words of the child") == 2
    assert shown.count("ValueError: child trouble") == (2 if end == "raise" else 0)


def test_fork_that_lives_on_changes_nothing_for_its_rank(pool: MakePool) -> None:
    def work(comm: Comm) -> int:
        child = os.fork()
        if child == 0:
            for _ in range(5):
                comm._recorder.enter(comm._noted_group, "barrier")
            time.sleep(1000)
        time.sleep(0.2)
        return child

    with RankPool(2) as own:
        children = own.run(work)
        assert own.run(total, 1.0) == [2.0, 2.0]
        assert all(map(is_alive, children))
    assert wait_until(lambda: not any(map(is_alive, children)), 5)


def test_fork_cannot_report(pool: MakePool) -> None:
    def work(comm: Comm) -> str:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                comm.report("from the child")
            except RuntimeError as error:
                os.write(writer, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        return os.read(reader, 1000).decode()

    heard: list[object] = []
    (said,) = pool(1).run(work, on_progress=lambda rank, value: heard.append(value))
    assert said == "report works on the rank itself, not in a process that it forked"
    assert heard == []


def test_late_report_is_not_the_next_calls(pool: MakePool) -> None:
    def leave_running(comm: Comm) -> None:
        def later() -> None:
            for n in range(8):
                time.sleep(0.05)
                comm.report(f"late {n}")

        threading.Thread(target=later).start()

    def work(comm: Comm) -> None:
        time.sleep(0.6)
        thread = threading.Thread(target=comm.report, args=("own thread",))
        thread.start()
        thread.join()
        comm.report("own")

    heard: list[object] = []
    pool(1).run(leave_running, on_progress=lambda rank, value: heard.append(value))
    time.sleep(0.12)
    pool(1).run(work, on_progress=lambda rank, value: heard.append(value))
    assert heard == ["own thread", "own"]
