"""Times of collectives: one per size, the same on every rank, never zero."""

from collections.abc import Callable

import pytest

from labkit.experiments.collective_time import CollectiveTime, growth, time_all_reduce
from labkit.ranks.pool import RankPool


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_rank_returns_the_slowest_ranks_time(pool: Callable[[int], RankPool], size: int):
    first, *others = pool(size).run(time_all_reduce, [4, 1024], repeats=3)
    assert [(t.ranks, t.payload_bytes) for t in first] == [(size, 4), (size, 1024)]
    assert all(other == first for other in others)
    assert min(t.seconds for t in first) > 0


def test_growth_compares_the_last_time_with_the_first():
    times = [CollectiveTime(2, 4, 0.5), CollectiveTime(2, 8, 9.0), CollectiveTime(2, 400, 2.0)]
    assert (growth(times).bytes, growth(times).seconds) == (100, 4)
