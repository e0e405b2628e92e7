"""Case I2: what ranks print, and how they fail, shows under the calling cell, every time."""

from __future__ import annotations

import pytest
from kernels import Kernel

EXPECTED = "[rank 0] hello from 0\n[rank 1] hello from 1\n[rank 1] and more\n"


@pytest.fixture(autouse=True)
def _talk(kernel: Kernel) -> None:
    kernel.run(
        "import ctypes, os, sys, time\n"
        "pool = RankPool(2)\n"
        "def talk(comm):\n"
        "    time.sleep(0.1 * (1 - comm.rank))\n"
        "    print(f'hello from {comm.rank}')\n"
        "    if comm.rank == 1:\n"
        "        print('and more')"
    )


def test_output_is_shown_in_rank_order_in_one_piece_every_time(kernel: Kernel) -> None:
    for _ in range(3):
        assert kernel.run("pool.run(talk);").stdout == [EXPECTED]


def test_output_and_error_of_one_rank_every_time(kernel: Kernel) -> None:
    kernel.run("def fail(comm):\n    talk(comm)\n    if comm.rank == 1: raise ValueError('boom')")
    for _ in range(2):
        output = kernel.run("pool.run(fail)")
        assert output.stdout == [EXPECTED]
        assert output.message.startswith("rank 1 raised ValueError: boom")


def test_output_of_a_rank_that_was_killed_is_shown(kernel: Kernel) -> None:
    kernel.run("def die(comm):\n    talk(comm)\n    os.kill(os.getpid(), 9)")
    output = kernel.run("pool.run(die)")
    assert output.stdout == [EXPECTED]
    assert "killed by SIGKILL" in output.message


def test_output_below_python_is_shown_too(kernel: Kernel) -> None:
    kernel.run(
        "def low(comm):\n"
        "    os.system('echo from a shell')\n"
        "    ctypes.CDLL(None).puts(b'from C')\n"
        "    sys.stderr.write('from stderr\\n')\n"
        "    print('no newline', end='')"
    )
    lines = kernel.run("pool.run(low);").text.splitlines()
    for rank in (0, 1):
        own = [line for line in lines if line.startswith(f"[rank {rank}] ")]
        said = {line.removeprefix(f"[rank {rank}] ") for line in own}
        assert {"from a shell", "from stderr"} <= said
        assert "from C" in "".join(own)
        assert "no newline" in "".join(own)


def test_progress_bars_leave_their_last_state(kernel: Kernel) -> None:
    cell = "pool.run(lambda comm: print('10%\\r50%\\r100%'));"
    assert kernel.run(cell).text == "[rank 0] 100%\n[rank 1] 100%\n"


def test_long_output_is_cut_in_the_middle(kernel: Kernel) -> None:
    cell = "pool.run(lambda comm: [print(i) for i in range(10000 * comm.rank)] and None);"
    lines = kernel.run(cell).text.splitlines()
    assert (lines[0], lines[-1]) == ("[rank 1] 0", "[rank 1] 9999")
    assert "[rank 1] ... 8000 lines not shown ..." in lines
    assert len(lines) == 2001


def test_progress_is_shown_while_the_cell_runs(kernel: Kernel) -> None:
    kernel.run(
        "def steps(comm):\n"
        "    for step in range(3):\n"
        "        comm.report(step)\n"
        "        time.sleep(0.1)"
    )
    output = kernel.run("pool.run(steps, on_progress=lambda rank, step: print(rank, step));")
    assert sorted(output.text.split("\n")[:-1]) == ["0 0", "0 1", "0 2", "1 0", "1 1", "1 2"]
