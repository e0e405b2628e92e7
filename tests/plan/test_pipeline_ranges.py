"""Layers over pipeline stages: where the remainder goes, and what it costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.shard import PartitionError, partition_experts, pipeline_ranges

PLACES = ("first", "middle", "last", "spread")


def lengths(*args):
    return [len(layers) for layers in pipeline_ranges(*args)]


@given(st.integers(1, 130), st.integers(1, 64), st.sampled_from(PLACES))
def test_stages_tile_the_layers_and_differ_by_at_most_one(num_layers, pp, place):
    if pp > num_layers:
        with pytest.raises(PartitionError, match=f"{num_layers} layers take PP 1 to {num_layers}"):
            pipeline_ranges(num_layers, pp, place)
        return
    stages = pipeline_ranges(num_layers, pp, place)
    assert [layer for layers in stages for layer in layers] == list(range(num_layers))
    assert max(map(len, stages)) - min(map(len, stages)) <= 1
    assert stages.efficiency == pytest.approx(num_layers / (pp * max(map(len, stages))))


def test_the_remainder_goes_where_it_is_told():
    assert lengths(10, 4) == [3, 3, 2, 2]
    assert lengths(10, 4, "middle") == [2, 3, 3, 2]
    assert lengths(10, 4, "last") == [2, 2, 3, 3]
    assert lengths(10, 4, "spread") == [2, 3, 2, 3]


def test_an_unknown_place_is_refused():
    with pytest.raises(ValueError, match="remainder is 'ends'; it must be one of first, middle"):
        pipeline_ranges(10, 4, "ends")


def test_whole_stages_lose_nothing():
    assert pipeline_ranges(64, 8).efficiency == 1


def test_experts_divide_with_their_copies():
    assert partition_experts(256, 64) == 4
    assert partition_experts(256, 320, 64) == 1
    with pytest.raises(PartitionError) as refused:
        partition_experts(10, 4)
    assert refused.value.legal == (1, 2, 5, 10)
