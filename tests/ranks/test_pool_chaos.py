"""One pool, one misfortune after another: each is explained, and the next call works.

Twenty rounds in CI, two hundred in `make soak`. The order is drawn from a seed that a failure
names.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable

import pytest
import torch

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError, RankTimeout

SIZE = 3
SHORT = 3.0  # seconds of a call that hangs

Misfortune = Callable[[Comm, int, float], object]


def work(comm: Comm, rounds: int = 20) -> float:
    """A few dozen collectives, so that misfortunes strike at different ones."""
    x = torch.full((17,), float(comm.rank + 1))
    for _ in range(rounds):
        comm.all_reduce(x, "avg")
        comm.barrier()
    return x[0].item()


def raises(comm: Comm, victim: int, seconds: float) -> None:
    work(comm, 3)
    if comm.rank == victim:
        raise ValueError("chaos")
    work(comm)


def exits(comm: Comm, victim: int, seconds: float) -> None:
    if comm.rank == victim:
        sys.exit(7)
    work(comm)


def dies(comm: Comm, victim: int, seconds: float) -> None:
    if comm.rank == victim:
        os._exit(9)
    work(comm)


def is_killed(comm: Comm, victim: int, seconds: float) -> None:
    """SIGKILL after a random time, wherever the rank then is."""
    if comm.rank == victim:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    while True:
        work(comm, 5)


def stays_away(comm: Comm, victim: int, seconds: float) -> None:
    work(comm, 2)
    if comm.rank != victim:
        work(comm)


def does_something_else(comm: Comm, victim: int, seconds: float) -> None:
    work(comm, 2)
    if comm.rank == victim:
        comm.broadcast(torch.ones(3))
    else:
        comm.all_gather(torch.ones(5, dtype=torch.float64))


def computes_for_ever(comm: Comm, victim: int, seconds: float) -> None:
    while comm.rank == victim:
        pass
    work(comm)


BLAMES_VICTIM: tuple[Misfortune, ...] = (
    raises, exits, dies, is_killed, stays_away, computes_for_ever,
)  # fmt: skip
MISFORTUNES = (*BLAMES_VICTIM, does_something_else)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


def live_through(rounds: int, seed: int) -> None:
    draw = random.Random(seed)
    expected = [sum(range(1, SIZE + 1)) / SIZE] * SIZE
    with RankPool(SIZE, stall_timeout=1.0, grace=0.5) as pool:
        assert pool.run(work) == pytest.approx(expected)
        files = open_files()
        for number in range(rounds):
            misfortune, victim = draw.choice(MISFORTUNES), draw.randrange(SIZE)
            story = f"seed {seed}, round {number}: rank {victim} {misfortune.__name__}"
            started = time.monotonic()
            with pytest.raises(RankError) as told:
                pool.run(misfortune, victim, draw.uniform(0.001, 0.3), timeout=SHORT)
            assert time.monotonic() - started < SHORT + 15, story
            if misfortune in BLAMES_VICTIM:
                assert told.value.rank == victim, f"{story}\n{told.value}"
            assert isinstance(told.value, RankTimeout) == (misfortune is computes_for_ever), story
            assert [report.rank for report in told.value.reports] == list(range(SIZE)), story
            assert pool.run(work) == pytest.approx(expected), story
            assert open_files() <= files, story


@pytest.mark.timeout(300)
def test_twenty_misfortunes_are_explained_and_survived() -> None:
    live_through(rounds=20, seed=2)


@pytest.mark.soak
def test_two_hundred_misfortunes_are_explained_and_survived() -> None:
    seed = random.SystemRandom().randrange(2**32)
    live_through(rounds=200, seed=seed)
