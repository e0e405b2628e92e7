"""Column, then row: the only placement that computes the block with one collective."""

from collections.abc import Callable

import pytest

from labkit.experiments.parallel_block import (
    Outcome,
    try_block_placements,
    try_layer_placements,
)
from labkit.ranks.pool import RankPool

Pools = Callable[[int], RankPool]
RIGHT = ["column, then row", "column, then column", "row, then column", "row, then row"]


def collectives(outcome: Outcome) -> int:
    return outcome.all_reduces + outcome.all_gathers


@pytest.mark.parametrize("size", [2, 3, 4])
def test_only_column_then_row_needs_one_collective(pool: Pools, size: int):
    for outcomes in pool(size).run(try_block_placements):
        right = [outcome for outcome in outcomes if outcome.is_right]
        assert [outcome.name for outcome in right] == RIGHT
        best, *others = right
        assert (best.all_reduces, best.all_gathers) == (1, 0)
        assert all(collectives(outcome) == 2 for outcome in others)
        assert all(outcome.wire_bytes > best.wire_bytes for outcome in others)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_what_saves_a_collective_computes_something_else(pool: Pools, size: int):
    for outcomes in pool(size).run(try_block_placements):
        wrong = {o.name: collectives(o) for o in outcomes if not o.is_right}
        assert wrong == {
            "row, then row, silu on partial sums": 1,
            "column, then row, never reduced": 0,
        }


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_layer_needs_an_all_reduce_after_each_block(pool: Pools, size: int):
    for after_each, at_the_end in pool(size).run(try_layer_placements):
        assert (after_each.all_reduces, after_each.is_right) == (2, True)
        assert (at_the_end.all_reduces, at_the_end.is_right) == (1, False)


def test_one_rank_is_right_however_it_is_cut(pool: Pools):
    [outcomes] = pool(1).run(try_block_placements)
    assert all(outcome.is_right and outcome.wire_bytes == 0 for outcome in outcomes)
