"""Case I1: functions written in a notebook cell run on ranks; nothing hangs."""

from __future__ import annotations

from kernels import Kernel


def test_function_lambda_and_closure_of_cells_run_on_ranks(kernel: Kernel) -> None:
    kernel.run("import torch\npool = RankPool(2)")
    kernel.run("scale = 10\ndef helper(rank):\n    return scale * rank")
    kernel.run(
        "def first(comm):\n"
        "    x = torch.full((2,), float(comm.rank + 1))\n"
        "    return helper(comm.rank), comm.all_reduce(x).tolist()"
    )
    assert kernel.run("pool.run(first)").result == "[(0, [3.0, 3.0]), (10, [3.0, 3.0])]"
    assert kernel.run("[*map(type, pool.run(lambda comm: helper))]").error is None
    closure = "def make(n):\n    return lambda comm: n + comm.rank\npool.run(make(5))"
    assert kernel.run(closure).result == "[5, 6]"


def test_class_of_a_cell_crosses_both_ways(kernel: Kernel) -> None:
    kernel.run(
        "from dataclasses import dataclass\npool = RankPool(2)\n"
        "@dataclass\nclass Point:\n    x: int"
    )
    output = kernel.run("pool.run(lambda comm, p: Point(p.x + comm.rank), Point(1))")
    assert output.result == "[Point(x=1), Point(x=2)]"
    same = kernel.run("all(isinstance(p, Point) for p in pool.run(lambda comm: Point(1)))")
    assert same.result == "True"


def test_redefined_function_is_the_new_one(kernel: Kernel) -> None:
    kernel.run("pool = RankPool(2)\ndef f(comm): return 1\nbefore = pool.run(f)")
    assert kernel.run("def f(comm): return 2\n[before, pool.run(f)]").result == "[[1, 1], [2, 2]]"


def test_error_names_the_cell_and_shows_its_line(kernel: Kernel) -> None:
    kernel.run("pool = RankPool(2)")
    kernel.run("def inner(comm):\n    if comm.rank == 1:\n        raise ValueError('boom')")
    output = kernel.run(
        "def outer(comm):\n    inner(comm)\n    comm.barrier()\npool.run(outer)", 20
    )
    assert output.error == "RankError"
    assert output.message.startswith("rank 1 raised ValueError: boom")
    assert "raise ValueError('boom')" in output.traceback
    assert "rank 0 waits in barrier [world #1]" in output.traceback
    assert "Cell In[" in output.traceback
    assert "ipykernel" not in output.traceback
    assert "labkit" not in output.traceback
    assert len(output.traceback.splitlines()) < 25


def test_what_cannot_be_pickled_is_refused_at_once(kernel: Kernel) -> None:
    kernel.run("import threading\npool = RankPool(2)\nlock = threading.Lock()")
    output = kernel.run("pool.run(lambda comm: lock)", 10)
    assert output.error == "TypeError"
    assert "cannot be sent to the ranks" in output.message
