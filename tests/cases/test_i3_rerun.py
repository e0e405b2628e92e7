"""Case I3: one cell twenty times, interrupted, in two notebooks at once; a killed kernel."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator

import pytest
from kernels import Kernel, is_alive, wait_until

CELL = """
pool = RankPool(2)
def work(comm):
    x = torch.ones(3) * comm.rank
    comm.all_reduce(x)
    return x.tolist()
pool.run(work)
"""
SLOW = """
pool = RankPool(2)
def slow(comm):
    print("started")
    comm.report("go")
    if comm.rank == 0:
        while True:
            pass
    comm.barrier()
pool.run(slow, on_progress=lambda rank, value: rank or print(value))
"""
RESULT = "[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]"


@pytest.fixture(scope="module")
def other_kernel() -> Iterator[Kernel]:
    started = Kernel()
    started.run("from labkit.ranks.pool import RankPool")
    yield started
    started.close()


def test_twenty_reruns_in_two_notebooks_at_once_with_two_interrupts(
    kernel: Kernel, other_kernel: Kernel
) -> None:
    kernels = (kernel, other_kernel)
    for each in kernels:
        each.run("import torch")
    for turn in range(20):
        if turn in (5, 12):
            cells = [each.start(SLOW) for each in kernels]
            for each, cell in zip(kernels, cells, strict=True):
                output = each.finish(cell, 30, interrupt_at="go")
                assert output.error == "KeyboardInterrupt"
                assert output.text.startswith("go\n[rank 0] started\n")
            continue
        cells = [each.start(CELL) for each in kernels]
        for each, cell in zip(kernels, cells, strict=True):
            output = each.finish(cell, 20)
            assert output.error is None, output.traceback
            assert output.result == RESULT


def test_interrupt_keeps_the_kernel_and_its_variables(kernel: Kernel) -> None:
    kernel.run("import torch, os\nkept = 42")
    cell = kernel.start(SLOW)
    assert kernel.finish(cell, 30, interrupt_at="go").error == "KeyboardInterrupt"
    assert kernel.run("kept").result == "42"
    assert kernel.run("pool.run(lambda comm: comm.rank)").result == "[0, 1]"


def test_kernel_killed_leaves_no_rank_and_spares_the_users_processes(
    other_kernel: Kernel,
) -> None:
    """Runs last: it ends `other_kernel`. One pool is idle, the ranks of the other are busy."""
    kernel = other_kernel
    pid = kernel.pid()
    kernel.run("import os, subprocess\nidle = RankPool(2)\nbusy = RankPool(2)")
    ranks = ast.literal_eval(
        kernel.run("[p.run(lambda comm: os.getpid()) for p in (idle, busy)]").result or ""
    )
    ranks = [*ranks[0], *ranks[1]]
    child = int(kernel.run("subprocess.Popen(['sleep', '60']).pid").result or 0)
    kernel.start(
        "def spin(comm):\n    while comm.rank == 0: pass\n    comm.barrier()\nbusy.run(spin)"
    )
    time.sleep(0.5)
    assert all(map(is_alive, [*ranks, child]))
    kernel.kill(pid)
    assert wait_until(lambda: not any(map(is_alive, ranks)), 5.0)
    assert is_alive(child)
