"""Case I7: ranks work whatever the notebook used before: CUDA, OpenMP threads, threads of its own.

They are no forks of the notebook, so nothing of it reaches them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from kernels import Kernel

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool


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


def test_ranks_are_no_children_of_the_notebook_and_have_no_cuda(
    pool: Callable[[int], RankPool],
) -> None:
    for _, has_cuda, parent in pool(2).run(work):
        assert not has_cuda
        assert parent != os.getpid()


def test_notebook_that_uses_ranks_never_initialises_cuda(kernel: Kernel) -> None:
    cell = "RankPool(1).run(lambda comm: comm.rank)\nimport torch\ntorch.cuda.is_initialized()"
    assert kernel.run(cell).result == "False"


@pytest.mark.skipif(torch.cuda.device_count() == 0, reason="needs a GPU")
def test_parent_with_memory_on_a_gpu() -> None:
    x = torch.ones(10, device="cuda")
    with RankPool(2, backend="gloo") as own:
        assert [product for product, _, _ in own.run(work)] == [300.0**3] * 2
    with RankPool(1) as own:
        (back,) = own.run(lambda comm, x: x.to(comm.device) * 2, x)
    assert back.tolist() == [2.0] * 10
