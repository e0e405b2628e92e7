"""Random programs of collectives over shared memory give what one process computes.

A hundred in CI, a thousand in `make soak`, over 1 to 4 ranks; a failure names the seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
import torch
from collective_programs import (
    as_numbers,
    draw_program,
    expected,
    make_groups,
    run_program,
)
from torch import Tensor

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool

SIZES = (1, 2, 3, 4)


def run_all(comm: Comm, seeds: Iterable[int]) -> list[list[Tensor]]:
    groups = make_groups(comm)
    return [run_program(groups, draw_program(seed), comm.rank) for seed in seeds]


def check(pool: RankPool, seeds: list[int]) -> None:
    for rank, programs in enumerate(pool.run(run_all, seeds)):
        for seed, results in zip(seeds, programs, strict=True):
            for step, got in zip(draw_program(seed), results, strict=True):
                want = expected(step, rank, pool.size)
                story = f"seed {seed}, rank {rank} of {pool.size}: {step}"
                assert (got.shape, got.dtype) == (want.shape, want.dtype), story
                assert torch.equal(as_numbers(got), as_numbers(want)), story


@pytest.mark.parametrize("n", SIZES)
def test_a_hundred_random_programs_give_what_one_process_computes(pool, n):
    check(pool(n), list(range(25)))


@pytest.mark.soak
@pytest.mark.parametrize("n", SIZES)
def test_a_thousand_random_programs_give_what_one_process_computes(pool, n):
    draw = random.SystemRandom()
    for _ in range(10):
        check(pool(n), [draw.randrange(2**32) for _ in range(25)])
