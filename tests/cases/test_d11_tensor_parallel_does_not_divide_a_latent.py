"""Case D11: multi-head latent attention: TP copies the cache, DP divides the requests
(vllm-project/recipes issue 762, vllm issue 51454)."""

import pytest

from labkit.plan.device_presets import DEVICES
from labkit.plan.layout import Layout
from labkit.plan.memory import plan_memory
from labkit.plan.model_presets import MODELS
from labkit.plan.rank_weights import stage_shares

MODELS_WITH_A_LATENT = ("deepseek-v3", "kimi-k2")


@pytest.mark.parametrize("name", MODELS_WITH_A_LATENT)
def test_a_token_takes_as_much_on_each_of_eight_ranks_as_on_one(name):
    model = MODELS[name].model
    one, eight = (stage_shares(model, Layout(tp=tp))[0].bytes_per_token(2) for tp in (1, 8))
    assert one == eight == model.num_layers * (512 + 64) * 2


def plans():
    model, device = MODELS["deepseek-v3"].model, DEVICES["b200"]
    return [plan_memory(model, device, layout) for layout in (Layout(tp=8), Layout(dp=8, ep=8))]


def test_attention_copies_hold_seven_to_eight_times_as_much_in_equal_pools():
    tp8, dp8 = plans()
    pool = tp8.stages[0].kv_pool_bytes
    tokens = [plan.layout.dp * plan.stages[0].blocks_in(pool) for plan in (tp8, dp8)]
    assert 7 <= tokens[1] / tokens[0] <= 8


def test_copies_of_attention_weights_take_some_of_it_back():
    tp8, dp8 = plans()
    weights = [plan.stages[0].weight_bytes for plan in (tp8, dp8)]
    assert weights[0]["experts"] == weights[1]["experts"]
    assert 4 * weights[0]["attention"] < weights[1]["attention"] <= 8 * weights[0]["attention"]
    length = tp8.model.max_position_embeddings
    ratio = 8 * dp8.max_concurrency(length) / tp8.max_concurrency(length)
    assert 6 < ratio < 8
