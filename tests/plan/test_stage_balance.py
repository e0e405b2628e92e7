"""Stages balanced by cost: the ends hold more, and no better cut exists."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.model_presets import MODELS
from labkit.plan.shard import PartitionError
from labkit.plan.stage_balance import balance_layers, end_bytes, layer_bytes, stage_costs

QWEN = MODELS["qwen2.5-72b"].model


def test_p4_the_ends_get_fewer_layers_where_embedding_and_head_weigh_as_layers_do():
    first, last = end_bytes(QWEN)
    ranges = balance_layers(layer_bytes(QWEN), 4, first=first, last=last)
    assert [len(stage) for stage in ranges] == [19, 21, 21, 19]
    even = stage_costs(
        layer_bytes(QWEN), [range(i, i + 20) for i in range(0, 80, 20)], first=first, last=last
    )
    assert max(stage_costs(layer_bytes(QWEN), ranges, first=first, last=last)) < max(even)


def test_a_tied_embedding_is_held_at_both_ends():
    first, last = end_bytes(MODELS["qwen2.5-0.5b"].model)
    assert last > first > 0


@given(
    costs=st.lists(st.integers(0, 20), min_size=1, max_size=9),
    stages=st.integers(1, 5),
    ends=st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_no_other_cut_has_a_cheaper_most_expensive_stage(costs, stages, ends):
    first, last = ends
    if stages > len(costs):
        with pytest.raises(PartitionError, match="stages empty"):
            balance_layers(costs, stages)
        return
    found = stage_costs(
        costs, balance_layers(costs, stages, first=first, last=last), first=first, last=last
    )
    for inner in combinations(range(1, len(costs)), stages - 1):
        borders = (0, *inner, len(costs))
        ranges = [range(a, b) for a, b in pairwise(borders)]
        assert max(found) <= max(stage_costs(costs, ranges, first=first, last=last))


def test_stages_that_leave_a_layer_out_are_refused():
    with pytest.raises(PartitionError, match="do not cover 3 layers"):
        stage_costs([1, 1, 1], [range(0, 2)])


def test_a_negative_cost_is_refused():
    with pytest.raises(ValueError, match="at least 0"):
        balance_layers([1, -1], 1)
