"""Case I7: ranks work whatever the notebook used before: CUDA, OpenMP threads, threads of its own.

They are no forks of the notebook, so nothing of it reaches them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pytest
import torch
from kernels import Kernel

from labkit.ranks import fork_server
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def work(comm: Comm) -> tuple[float, bool, int]:
    x = torch.ones(300, 300)
    product = (x @ x).sum().item()  # takes OpenMP threads in the rank
    comm.all_reduce(torch.ones(1))
    return product, torch.cuda.is_initialized(), os.getppid()


@pytest.fixture
def many_threads() -> Iterator[None]:
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(30)]
    for thread in threads:
        thread.start()
    yield
    stop.set()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("many_threads")
def test_parent_with_openmp_threads_and_threads_of_its_own() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        x = torch.randn(500, 500)
        _ = (x @ x).relu().sum()
        with RankPool(2, threads_per_rank=2, timeout=20) as own:
            results = own.run(work)
    finally:
        torch.set_num_threads(before)
    assert [product for product, _, _ in results] == [300.0**3] * 2


def test_ranks_are_no_children_of_the_notebook(pool: Callable[[int], RankPool]) -> None:
    assert os.getpid() not in [parent for _, _, parent in pool(2).run(work)]


SERVER_THAT_NOTES = """
import os, runpy, sys
import torch
first = torch.cuda._lazy_init

def noted(*args):
    with open({log!r}, "a") as log:
        log.write("rank\\n" if os.getsid(0) != server else "server\\n")
    return first(*args)

server = os.getsid(0)
torch.cuda._lazy_init = noted
{extra}
runpy.run_path({server!r}, run_name="__main__")
"""


class CudaLog:
    """Who initialised CUDA, or tried to on a machine without a GPU: parent, server, ranks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.monkeypatch = monkeypatch
        self.folder = folder
        self.file = folder / "cuda.log"
        self.file.touch()
        first = torch.cuda._lazy_init

        def noted() -> None:
            self.file.write_text(self.file.read_text() + "parent\n")
            first()

        monkeypatch.setattr(torch.cuda, "_lazy_init", noted)
        monkeypatch.setattr(fork_server, "_server", None)  # other tests' server waits meanwhile
        self.real_server = fork_server.protocol.__file__
        self.use_new_server()

    def use_new_server(self, extra: str = "") -> None:
        """From now on pools use a new server, in which, as in its ranks, CUDA is watched too."""
        self.stop_server()
        script = self.folder / "server.py"
        log, server = str(self.file), self.real_server
        script.write_text(SERVER_THAT_NOTES.format(log=log, server=server, extra=extra))
        self.monkeypatch.setattr(fork_server.protocol, "__file__", str(script))

    def stop_server(self) -> None:
        if fork_server._server is not None:
            fork_server._server.stop()
        fork_server._server = None

    def who(self) -> set[str]:
        return set(self.file.read_text().split())


@pytest.fixture
def cuda_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CudaLog]:
    log = CudaLog(monkeypatch, tmp_path)
    yield log
    log.stop_server()


def touch_cuda() -> None:
    with contextlib.suppress(AssertionError, RuntimeError):  # there is no GPU
        torch.cuda.init()


def test_neither_notebook_nor_server_nor_ranks_initialise_cuda(cuda_log: CudaLog) -> None:
    def fail(comm: Comm) -> None:
        comm.report(torch.ones(2))
        raise ValueError

    with RankPool(2, backend="gloo") as own:
        assert [has_cuda for _, has_cuda, _ in own.run(work)] == [False, False]
        kept = own.put(lambda comm, x: x + comm.rank, torch.ones(1000))
        sums = own.run(lambda comm, x: comm.all_reduce(x).sum(), kept)
        assert [total.item() for total in sums] == [3000.0, 3000.0]
        with pytest.raises(RankError):
            own.run(fail, on_progress=lambda rank, value: None)
        own.run(work)
    assert cuda_log.who() == set()


def test_initialising_cuda_anywhere_would_be_seen(cuda_log: CudaLog) -> None:
    with RankPool(1, backend="gloo") as own:
        own.run(lambda comm: touch_cuda())
        assert cuda_log.who() == {"rank"}
    touch_cuda()
    assert cuda_log.who() == {"rank", "parent"}
    cuda_log.use_new_server("try: torch.cuda.init()\nexcept (AssertionError, RuntimeError): pass")
    with RankPool(1, backend="gloo") as own:
        own.run(lambda comm: comm.rank)
    assert cuda_log.who() == {"rank", "parent", "server"}


WATCHED_CELL = """
import torch
touched, first = [], torch.cuda._lazy_init
torch.cuda._lazy_init = lambda: touched.append(1) or first()
RankPool(1).run(lambda comm: comm.rank)
{extra}
torch.cuda._lazy_init = first
(touched, torch.cuda.is_initialized())
"""


def test_notebook_that_uses_ranks_never_initialises_cuda(kernel: Kernel) -> None:
    assert kernel.run(WATCHED_CELL.format(extra="")).result == "([], False)"


@pytest.mark.skipif(torch.cuda.device_count() > 0, reason="would initialise CUDA in the notebook")
def test_notebook_that_touches_cuda_would_be_seen(kernel: Kernel) -> None:
    extra = "try: torch.cuda.init()\nexcept (AssertionError, RuntimeError): pass"
    assert kernel.run(WATCHED_CELL.format(extra=extra)).result == "([1], False)"


@pytest.mark.skipif(torch.cuda.device_count() == 0, reason="needs a GPU")
def test_parent_with_memory_on_a_gpu() -> None:
    x = torch.ones(10, device="cuda")
    with RankPool(2, backend="gloo") as own:
        assert [product for product, _, _ in own.run(work)] == [300.0**3] * 2
    with RankPool(1) as own:
        (back,) = own.run(lambda comm, x: x.to(comm.device) * 2, x)
    assert back.tolist() == [2.0] * 10
