"""What a pool leaves behind, whatever ends first: no process, no folder, no open file."""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pytest
import torch
from kernels import is_alive, wait_until

from labkit.ranks import fork_server as forker
from labkit.ranks.comm import Comm
from labkit.ranks.fork_server import StartError
from labkit.ranks.pool import RankPool, run_ranks
from labkit.ranks.report import RankError

cloudpickle.register_pickle_by_value(sys.modules[__name__])
MakePool = Callable[[int], RankPool]


@pytest.fixture
def temp_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder for temporary files of this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def pids_of(pool: RankPool) -> list[int]:
    return pool.run(lambda comm: os.getpid())


def all_dead(pids: list[int], seconds: float = 5.0) -> bool:
    return wait_until(lambda: not any(map(is_alive, pids)), seconds)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


# -- ends of a pool ----------------------------------------------------------------------------


def end_by_close(pool: RankPool) -> None:
    pool.close()


def end_by_error(pool: RankPool) -> None:
    def work(comm: Comm) -> None:
        raise ValueError

    with pytest.raises(RankError):
        pool.run(work)


def end_by_garbage(pool: RankPool) -> None:
    pool.__dict__["_myself"] = pool  # a cycle: only the collector can free it


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts files in /proc")
@pytest.mark.parametrize("end", [end_by_close, end_by_error, end_by_garbage])
def test_nothing_is_left_after_many_pools(end: Callable[[RankPool], None], temp_folder) -> None:
    RankPool(2).close()
    gc.collect()
    before = open_files()
    pids = []
    for _ in range(7):
        pool = RankPool(2)
        pids += pids_of(pool)
        end(pool)
        del pool
        gc.collect()
    assert all_dead(pids)
    assert wait_until(lambda: not list(temp_folder.iterdir()), 2)
    assert open_files() == before


def test_what_a_rank_started_ends_with_it(pool: MakePool) -> None:
    def start_child(comm: Comm) -> int:
        return subprocess.Popen(["sleep", "1000"]).pid

    with RankPool(2) as own:
        children = own.run(start_child)
        assert all(map(is_alive, children))
    assert all_dead(children)
    with RankPool(2) as own:
        children = own.run(start_child)
        ranks = pids_of(own)
        os.kill(ranks[0], signal.SIGKILL)
        assert all_dead(children[:1])
        assert is_alive(children[1])


def test_children_of_the_caller_are_neither_killed_nor_reaped(pool: MakePool) -> None:
    sleeper = subprocess.Popen(["sleep", "1000"])
    ended = subprocess.Popen(["true"])
    own = RankPool(2)
    end_by_error(own)
    own.close()
    assert is_alive(sleeper.pid)
    assert os.waitpid(ended.pid, 0) == (ended.pid, 0)
    sleeper.kill()
    sleeper.wait()


# -- ends of the parent ------------------------------------------------------------------------

PARENT = """
import ctypes, os, subprocess, sys, time
from labkit.ranks.pool import RankPool

def pid(comm):
    return os.getpid()

def stuck_in_c(comm):
    comm.report(os.getpid())
    ctypes.PyDLL(None).sleep(1000)

pool = RankPool(2)
sleeper = subprocess.Popen(["sleep", "1000"])
seen = []

def progress(rank, value):
    seen.append(value)
    if len(seen) == 2:
        print([*seen, sleeper.pid], flush=True)

how = sys.argv[1]
if how == "idle":
    print([*pool.run(pid), sleeper.pid], flush=True)
    time.sleep(1000)
elif how == "fork":
    ranks = pool.run(pid)
    if os.fork() == 0:
        time.sleep(30)  # holds copies of everything the parent had open
        os._exit(0)
    print([*ranks, sleeper.pid], flush=True)
    time.sleep(1000)
else:
    pool.run(stuck_in_c, on_progress=progress)
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Callable[[str], tuple[subprocess.Popen, list[int], int]]]:
    """Starts the script above; returns it, its ranks, and a child of its own."""
    script = tmp_path / "script with spaces.py"
    script.write_text(PARENT)
    started = []

    def start(how: str) -> tuple[subprocess.Popen, list[int], int]:
        process = subprocess.Popen(
            [sys.executable, str(script), how],
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        *ranks, child = ast.literal_eval(process.stdout.readline())
        return process, ranks, child

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.parametrize("how", ["idle", "C", "fork"])
def test_no_rank_outlives_a_killed_parent(parent, how: str) -> None:
    process, ranks, child = parent(how)
    assert all(map(is_alive, [*ranks, child]))
    os.kill(process.pid, signal.SIGKILL)
    assert all_dead(ranks, 5.0)
    assert is_alive(child)


def test_parent_killed_while_the_server_starts_leaves_no_folder(tmp_path: Path) -> None:
    """The server then finds the request for a pool in its channel, and nobody who sent it."""
    script = tmp_path / "starts.py"
    script.write_text(
        textwrap.dedent("""
        import os, time
        from labkit.ranks import rank_set
        def forked(*arguments):
            print(rank_set.fork_server().process.pid, flush=True)
            time.sleep(1000)
        rank_set.RankSet._wait_until_ready = forked
        from labkit.ranks.pool import RankPool
        RankPool(1).run(lambda comm: 1)
        """)
    )
    folder = tmp_path / "temporary"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(
            os.environ, TMPDIR=str(folder), PYTHONPATH=os.pathsep.join(filter(None, sys.path))
        ),
    )
    assert process.stdout is not None
    with process.stdout:
        server = int(process.stdout.readline())
    process.kill()
    process.wait()
    assert all_dead([server], 30.0)
    assert not list(folder.iterdir())


def test_folder_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labkit.ranks.rank_set.secrets.token_hex", lambda size: "no/such")
    with RankPool(1) as own, pytest.raises(StartError, match=r"no temporary folder: .*no/such"):
        own.run(lambda comm: 1)
    monkeypatch.undo()
    assert run_ranks(lambda comm: comm.rank, 1) == [0]


def test_control_c_in_a_terminal_stops_the_call_only(tmp_path: Path) -> None:
    """In a script without a `__main__` guard, which then ends and leaves no ranks."""
    script = tmp_path / "interrupted.py"
    script.write_text(
        textwrap.dedent("""
        import signal, time
        from labkit.ranks.pool import RankPool
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job with & ignores it
        pool = RankPool(2)
        def work(comm):
            print("started", comm.rank)
            comm.report(1)
            time.sleep(1000)
        try:
            pool.run(work, on_progress=lambda rank, value: print("go", flush=True))
        except KeyboardInterrupt:
            print(pool.run(lambda comm: comm.rank))
            print(pool.run(lambda comm: __import__("os").getpid()))
        """)
    )
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    assert process.stdout.readline() == "go\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole process group
    output, _ = process.communicate(timeout=30)
    *lines, pids = output.splitlines()
    assert lines == ["[rank 0] started 0", "[rank 1] started 1", "[0, 1]"]
    assert process.returncode == 0
    assert all_dead(ast.literal_eval(pids))


# -- the fork server and forks -----------------------------------------------------------------


def test_server_that_was_killed_is_replaced(temp_folder: Path) -> None:
    with RankPool(2) as own:
        ranks = pids_of(own)
        server = forker.fork_server()
        os.kill(server.process.pid, signal.SIGKILL)
        assert all_dead(ranks)
        assert pids_of(own) != ranks
        assert forker.fork_server() is not server
    assert wait_until(lambda: not list(temp_folder.iterdir()), 2)


def test_server_that_is_killed_during_a_call() -> None:
    def work(comm: Comm) -> None:
        comm.report(1)
        time.sleep(1000)

    def kill_server(rank: int, value: object) -> None:
        os.kill(forker.fork_server().process.pid, signal.SIGKILL)

    with RankPool(1) as own:
        with pytest.raises(RankError, match="rank 0 died"):
            own.run(work, on_progress=kill_server)
        assert own.run(lambda comm: comm.rank) == [0]


def test_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    broken = tmp_path / "server.py"
    broken.write_text("raise ImportError('no torch here')")
    monkeypatch.setattr(forker, "_server", None)
    monkeypatch.setattr(forker.protocol, "__file__", str(broken))
    with pytest.raises(StartError, match="no torch here"):
        RankPool(1).run(lambda comm: 1)


def test_fork_of_the_caller_gets_ranks_of_its_own() -> None:
    with RankPool(2) as own:
        ranks = pids_of(own)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                others = pids_of(own)
                os.write(writer, repr(others).encode())
                own.close()
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        others = ast.literal_eval(os.read(reader, 4096).decode())
        os.close(reader)
        assert len({*ranks, *others}) == 4
        assert all_dead(others)
        assert pids_of(own) == ranks


def test_server_has_one_thread_and_no_cuda() -> None:
    with RankPool(1) as own:
        own.run(lambda comm: None)
        with open(f"/proc/{forker.fork_server().process.pid}/status") as status:
            assert "Threads:\t1\n" in status.read()
        assert own.run(lambda comm: torch.cuda.is_initialized()) == [False]


def test_rank_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    package = tmp_path / "labkit"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('half an installation')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(StartError, match=r"(?s)rank \d could not start:.*half an installation"):
        RankPool(2).run(lambda comm: 1)


def test_interrupt_while_ranks_start() -> None:
    with RankPool(2) as own:
        previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            for seconds in (0.001, 0.02, 0.05, 0.1):
                signal.setitimer(signal.ITIMER_REAL, seconds)
                with contextlib.suppress(KeyboardInterrupt):
                    own.run(lambda comm: time.sleep(1))
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.signal(signal.SIGALRM, previous)
        assert own.run(lambda comm: comm.rank) == [0, 1]
