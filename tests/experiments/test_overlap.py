"""An all-reduce beside products: the same on every rank, and what counts as hidden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from labkit.experiments.overlap import OverlapTime, time_overlap
from labkit.experiments.provenance import Provenance
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool

TIME = OverlapTime(2, "gloo", 4, 1, 1, 3.0, 2.0, 5.0, 4.0, Provenance.here())


def test_hidden_is_what_side_by_side_saves_of_the_shorter():
    assert (TIME.hidden_seconds, TIME.hidden_share) == (1.0, 0.5)
    assert replace(TIME, side_by_side_seconds=3.0).hidden_share == 1.0


def test_every_rank_returns_the_slowest_ranks_seconds(pool: Callable[[int], RankPool]):
    first, second = pool(2).run(time_overlap, 4096, turns=2)
    assert replace(second, provenance=first.provenance) == first
    assert first.products >= 1
    assert min(first.product_seconds, first.all_reduce_seconds, first.side_by_side_seconds) > 0
    assert (first.payload_bytes, first.ranks, first.turns) == (4096, 2, 2)


def test_what_cannot_overlap_is_refused():
    with pytest.raises(ValueError, match="1 rank has nothing to all-reduce"):
        time_overlap(Comm.solo())
