"""A rank is killed at a random moment among collectives over shared memory: the others notice by
themselves, the pool names it, and no process, file or memory stays behind.

Twenty kills in CI, two hundred in `make soak`. The moments are drawn from a seed that a failure
names.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from shared_groups import with_small_slots

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError
from labkit.ranks.shared_segment import start_time

DEADLINE = 20.0  # seconds of a call


def busy(comm: Comm, renew: bool) -> None:
    """All collectives, in one piece and in several; with `renew` over groups made on the way."""
    small = with_small_slots(comm, one_shot_bytes=0)
    comm.report("ready")
    while True:
        if renew:
            small = with_small_slots(comm, one_shot_bytes=0)
        for group in (comm, small):
            for count in (1, 100, 6000):
                x = torch.full((count * group.size,), float(group.rank))
                group.all_reduce(x)
                group.reduce_scatter(x)
                group.all_gather(x)
                group.all_to_all(x)
                group.broadcast(x)
                group.barrier()


def memory_of(comm: Comm) -> tuple[int, str]:
    """This rank's process, and the number of the file in memory that it shares."""
    comm.barrier()
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "labkit-collectives" in line:
            return os.getpid(), line.split()[4]
    raise AssertionError("this rank shares no memory")


def holders(inode: str) -> list[str]:
    """The processes that have this file in memory mapped."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines = (process / "maps").read_text().splitlines()
        except OSError:
            continue
        if any("labkit-collectives" in line and line.split()[4] == inode for line in lines):
            found.append(process.name)
    return found


def start_once(killer: threading.Timer, rank: int, said: object) -> None:
    if killer.ident is None:
        killer.start()


def kill_again_and_again(rounds: int, seed: int) -> None:
    draw = random.Random(seed)
    shared_names = set(os.listdir("/dev/shm"))
    for number in range(rounds):
        size = draw.choice((2, 2, 3, 4))
        victim, seconds, renew = draw.randrange(size), draw.uniform(0.0, 0.1), draw.random() < 0.2
        story = f"seed {seed}, round {number}: rank {victim} of {size} after {seconds:.3f} s"
        # Groups are made over gloo, where only the neighbours of a dead rank notice.
        grace = 0.5 if renew else DEADLINE
        with RankPool(size, backend="gloo", grace=grace, timeout=DEADLINE) as pool:
            pids, inodes = zip(*pool.run(memory_of), strict=True)
            folder = pool.start_id.folder
            assert len(set(inodes)) == 1
            assert sorted(map(int, holders(inodes[0]))) == sorted(pids)
            started = time.monotonic()
            killer = threading.Timer(seconds, os.kill, (pids[victim], signal.SIGKILL))
            if renew:
                killer.start()
            with pytest.raises(RankError) as told:
                pool.run(busy, renew, on_progress=partial(start_once, killer))
            killer.join()
            assert time.monotonic() - started < DEADLINE, story
            assert told.value.rank == victim, f"{story}\n{told.value}"
            for report in told.value.reports if not renew else ():
                state = "died" if report.rank == victim else "raised"
                assert report.state == state, f"{story}\n{told.value}"
        assert [pid for pid in pids if start_time(pid) is not None] == [], story
        assert holders(inodes[0]) == [], story
        assert not os.path.exists(folder), story
    left = [name for name in set(os.listdir("/dev/shm")) - shared_names if "labkit" in name]
    assert left == []


@pytest.mark.timeout(300)
def test_twenty_kills_are_noticed_and_leave_nothing() -> None:
    kill_again_and_again(rounds=20, seed=1)


@pytest.mark.soak
def test_two_hundred_kills_are_noticed_and_leave_nothing() -> None:
    kill_again_and_again(rounds=200, seed=random.SystemRandom().randrange(2**32))
