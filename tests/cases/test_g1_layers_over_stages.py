"""Case G1: 61 layers on 8 stages (sglang pull requests 6666 and 13282, vllm 13839 and 46217)."""

import pytest

from labkit.plan.layout import Layout
from labkit.plan.legality import check
from labkit.plan.model import ModelSpec
from labkit.plan.shard import PipelineStages, pipeline_ranges


def lengths(num_layers, pp, remainder="first"):
    return [len(layers) for layers in pipeline_ranges(num_layers, pp, remainder)]


def test_61_layers_are_dealt_evenly():
    assert lengths(61, 8) == [8, 8, 8, 8, 8, 7, 7, 7]
    assert lengths(61, 8, "middle") == [7, 7, 8, 8, 8, 8, 8, 7]
    assert lengths(61, 8, "last") == [7, 7, 7, 8, 8, 8, 8, 8]


@pytest.mark.parametrize(
    ("num_layers", "expected"), [(61, [15, 15, 16, 15]), (94, [23, 24, 24, 23])]
)
def test_the_ends_are_spared(num_layers, expected):
    assert lengths(num_layers, 4, "middle") == expected


def test_efficiency_is_0_953_wherever_the_remainder_is():
    for place in ("first", "middle", "last", "spread"):
        assert round(pipeline_ranges(61, 8, place).efficiency, 3) == 0.953


def test_a_last_stage_that_takes_all_of_the_remainder_costs_a_third():
    ends = [*range(7, 50, 7), 61]
    stages = PipelineStages(
        range(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)
    )
    assert [len(layers) for layers in stages] == [7, 7, 7, 7, 7, 7, 7, 12]
    assert round(stages.efficiency, 3) == 0.635


def test_the_plan_says_what_61_layers_cost_on_8_stages():
    model = ModelSpec.from_hf(
        {
            "model_type": "llama",
            "hidden_size": 1024,
            "num_attention_heads": 8,
            "num_key_value_heads": 8,
            "intermediate_size": 2048,
            "num_hidden_layers": 61,
            "vocab_size": 32000,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-6,
        }
    )
    legality = check(model, Layout(pp=8))
    assert legality.is_legal
    (note,) = legality.notes
    assert (
        note == "61 layers on 8 stages: up to 8 a stage, so stages work 95.3% of the time at most"
    )
