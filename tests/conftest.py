"""What every test may ask for: a pool of ranks, and the models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernels import Kernel

from labkit.models.library import ModelNotFoundError, resolve
from labkit.ranks.pool import RankPool


@pytest.fixture(scope="session")
def pool() -> Iterator[Callable[[int], RankPool]]:
    """`pool(n)`: a pool of `n` ranks, started once and shared by all tests."""
    pools: dict[int, RankPool] = {}

    def pool_of(n: int) -> RankPool:
        if n not in pools:
            pools[n] = RankPool(n, timeout=60.0)
        return pools[n]

    yield pool_of
    for started in pools.values():
        started.close()


@pytest.fixture(scope="session")
def kernel() -> Iterator[Kernel]:
    """A Jupyter kernel in which `RankPool` is imported; tests define what else they use."""
    started = Kernel()
    started.run("from labkit.ranks.pool import RankPool")
    yield started
    started.close()


@pytest.fixture(scope="session")
def tiny() -> Path:
    """The folder of the tiny checkpoint that ships in the package."""
    return resolve("tiny")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The folder of SmolLM2; skipped where it was not fetched, unless LABKIT_REQUIRE_MODEL=1."""
    try:
        return resolve("smollm2-135m")
    except ModelNotFoundError as missing:
        if os.environ.get("LABKIT_REQUIRE_MODEL") == "1":
            raise
        pytest.skip(str(missing))
