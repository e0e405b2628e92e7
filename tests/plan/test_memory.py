"""Memory of a layout: parts that sum, capacities that are minima, reasons with their numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.plan.device_presets import DEVICES
from labkit.plan.engine_options import EngineOptions
from labkit.plan.holdings import holdings
from labkit.plan.layout import Layout
from labkit.plan.memory import plan_memory
from labkit.plan.memory_questions import (
    explain_blocks,
    fit,
    tokens_in_pool,
    unexplained_memory,
)
from labkit.plan.model import CacheKind, LayerCache, ModelSpec
from labkit.plan.model_presets import MODELS
from labkit.plan.presets import PRESETS
from labkit.plan.rank_weights import stage_shares

H100, TEXTBOOK = DEVICES["h100"], DEVICES["textbook-80gb"]
DENSE, MOE = MODELS["llama-3.1-70b"].model, MODELS["deepseek-v3"].model
NO_OVERHEAD = EngineOptions(activation_bytes=0, runtime_bytes=0)


@pytest.mark.parametrize(
    ("name", "tp"),
    [
        ("smollm2-135m", 3),
        ("qwen2.5-0.5b", 2),
        ("llama-2-7b", 1),
        ("llama-2-7b", 16),
        ("llama-3.1-70b", 4),
        ("llama-3.1-70b", 16),
        ("qwen2.5-72b", 8),
    ],
)
def test_a_dense_share_is_what_the_loader_holds(name, tp):
    held = holdings(PRESETS[name].spec, tp)
    share = stage_shares(MODELS[name].model, Layout(tp=tp))[0]
    assert share.weight_bytes == dict(held.ranks[-1].weight_bytes)
    assert share.bytes_per_token(2) == held.ranks[-1].kv_bytes_per_token


@settings(max_examples=60, deadline=None)
@given(
    tp=st.sampled_from([1, 2, 4, 8, 16]),
    pp=st.integers(1, 9),
    memory=st.floats(1e9, 4e11),
    more=st.floats(1.0, 3.0),
    block=st.sampled_from([1, 16, 64]),
    model=st.sampled_from([DENSE, MOE, MODELS["gpt-oss-120b"].model]),
)
def test_plans_are_consistent(tp, pp, memory, more, block, model):
    layout, options = Layout(tp=tp, pp=pp), EngineOptions(block_size=block)
    plan = plan_memory(model, replace(H100, memory_bytes=memory), layout, options)
    for stage in plan.stages:
        assert math.isclose(sum(stage.parts.values()), stage.usable_bytes, rel_tol=1e-9)
        assert stage.usable_bytes == 0.9 * memory
    assert [n for stage in plan.stages for n in stage.layers] == list(range(model.num_layers))
    if plan.fits:
        assert plan.reason == ""
        held = max(s.taken_bytes + plan.kv_tokens * s.kv_bytes_per_token for s in plan.stages)
        assert held <= 0.9 * memory
        assert plan.kv_tokens == min(s.kv_tokens for s in plan.stages) == plan.kv_blocks * block
        assert plan.stages[plan.limiting_stage].kv_tokens == plan.kv_tokens
    else:
        assert plan.kv_tokens == 0 == plan.longest_context() == plan.max_concurrency(1)
        assert "GiB" in plan.reason
    roomier = plan_memory(model, replace(H100, memory_bytes=memory * more), layout, options)
    assert roomier.kv_tokens >= plan.kv_tokens
    assert roomier.longest_context() >= plan.longest_context()


def test_each_stage_divides_its_memory_by_its_own_layers():
    plan = plan_memory(MOE, DEVICES["h200"], Layout(tp=8, pp=8), NO_OVERHEAD)
    per_layer = {s.kv_bytes_per_token / len(s.layers) for s in plan.stages}
    assert per_layer == {(512 + 64) * 2}
    assert [len(s.layers) for s in plan.stages] == [8, 8, 8, 8, 8, 7, 7, 7]
    for stage in plan.stages:
        tokens = stage.kv_pool_bytes / (len(stage.layers) * 1152)
        assert stage.kv_blocks == math.floor(tokens / 16)


def test_the_ends_hold_embedding_and_head():
    first, middle, last = plan_memory(DENSE, H100, Layout(tp=8, pp=3)).stages
    assert "embedding" in first.weight_bytes
    assert "LM head" in last.weight_bytes
    assert not {"embedding", "LM head"} & set(middle.weight_bytes)


def test_a_tied_head_is_a_copy_where_it_lives_on_another_stage():
    tied = MODELS["qwen2.5-0.5b"].model
    one = sum(s.total_weight_bytes for s in stage_shares(tied, Layout()))
    two = sum(s.total_weight_bytes for s in stage_shares(tied, Layout(pp=2)))
    assert two - one == 151936 * 896 * 2


def test_kv_heads_above_their_number_are_copied():
    tokens = [plan_memory(DENSE, TEXTBOOK, Layout(tp=tp)).stages[0] for tp in (8, 16)]
    assert tokens[0].kv_bytes_per_token == tokens[1].kv_bytes_per_token == 2 * 80 * 128 * 2


def test_fp8_cache_holds_twice_the_tokens():
    options = [replace(NO_OVERHEAD, kv_cache_dtype=dtype) for dtype in ("auto", "fp8")]
    half, whole = (plan_memory(DENSE, H100, Layout(tp=8), one).kv_blocks for one in options)
    assert whole // 2 == half


def test_experts_are_dealt_over_ep_with_their_copies():
    def expert_bytes(layout: Layout, redundant: int = 0) -> float:
        options = EngineOptions(num_redundant_experts=redundant)
        [stage] = plan_memory(MOE, H100, layout, options).stages
        return stage.weight_bytes["experts"]

    whole = expert_bytes(Layout())
    assert expert_bytes(Layout(tp=8, ep=8)) == expert_bytes(Layout(tp=8)) == whole / 8
    assert expert_bytes(Layout(tp=4, dp=8, ep=32)) == whole / 32
    assert expert_bytes(Layout(tp=4, dp=8, ep=32), redundant=32) == whole * 9 / 256
    assert expert_bytes(Layout(tp=4, dp=8, ep=8)) == whole / 32, "four ranks cut each expert"


def test_windows_and_states_count_by_sequence():
    layer = DENSE.layers[0]
    window = replace(layer, cache=replace(layer.cache, kind=CacheKind.WINDOW, window=128))
    state = LayerCache(CacheKind.RECURRENT, state_elements=1000, state_heads=8)
    model = replace(DENSE, layers=(layer, window, replace(layer, cache=state)))
    [stage] = plan_memory(model, H100, Layout(), NO_OVERHEAD).stages
    token = 2 * 8 * 128 * 2
    assert stage.kv_bytes_per_token == token
    assert stage.sequence_bytes(64) == 128 * token + 2000
    assert stage.sequence_bytes(1024) == (1024 + 128) * token + 2000
    assert stage.state_bytes_per_sequence == 2000


def test_a_sequence_takes_whole_blocks():
    [stage] = plan_memory(DENSE, TEXTBOOK, Layout(tp=1)).stages
    assert stage.sequence_bytes(1) == stage.sequence_bytes(16) == 16 * 327_680
    assert stage.sequence_bytes(17) == 32 * 327_680


def test_what_does_not_fit_says_by_how_much():
    plan = plan_memory(MODELS["qwen2.5-72b"].model, TEXTBOOK, Layout(tp=2), NO_OVERHEAD)
    assert not plan.fits
    assert "the weights of a rank, 67.7 GiB, are more than the 67.1 GiB that are usable" in (
        plan.reason
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gpu_memory_utilization": 90}, "gpu_memory_utilization is 90; it must be at most 1"),
        ({"gpu_memory_utilization": math.nan}, "gpu_memory_utilization is nan"),
        ({"gpu_memory_utilization": 0}, "gpu_memory_utilization is 0"),
        ({"kv_cache_dtype": "fp9"}, "kv_cache_dtype is 'fp9'; there are auto"),
        ({"block_size": 0}, "block_size is 0"),
        ({"block_size": True}, "block_size is True"),
        ({"max_num_seqs": 2.5}, "max_num_seqs is 2.5"),
        ({"num_redundant_experts": -1}, "num_redundant_experts is -1"),
        ({"runtime_bytes": -1}, "runtime_bytes is -1"),
        ({"activation_bytes": math.inf}, "activation_bytes is inf"),
    ],
)
def test_options_out_of_range_are_refused_by_name(wrong, message):
    with pytest.raises(ValueError, match=message):
        EngineOptions(**wrong)


def test_fit_answers_in_a_sentence():
    small = fit(MODELS["llama-3.1-8b"].model, DEVICES["h100"], length=8192)
    assert small.fits
    assert small.sentence.startswith("It fits, with room for 55.05 requests of 8,192 tokens: ")
    assert small.longest_context == 131_072
    large = fit(DENSE, H100)
    assert not large.fits
    assert "the weights of a rank, 131.4 GiB, are more than" in large.sentence
    tight = fit(MODELS["llama-3.1-8b"].model, DEVICES["rtx-3090"], length=131_072)
    assert not tight.fits
    assert "one request of 131,072 tokens does not" in tight.sentence
    assert 0 < tight.longest_context < 131_072
    assert tight.plan.max_concurrency(tight.longest_context) >= 1
    assert tight.plan.max_concurrency(tight.longest_context + 16) < 1


def test_nonsense_is_refused_by_name():
    with pytest.raises(ValueError, match="length is 200,000; the model has 131,072 positions"):
        fit(DENSE, H100, length=200_000)
    with pytest.raises(ValueError, match="length is 0"):
        tokens_in_pool(DENSE, 1e9, length=0)
    with pytest.raises(ValueError, match="pool_bytes is -1"):
        tokens_in_pool(DENSE, -1)
    with pytest.raises(ValueError, match="blocks is 0"):
        explain_blocks(DENSE, H100, 0)
    with pytest.raises(ValueError, match="length is 0; it must be a whole number"):
        plan_memory(DENSE, H100, Layout(tp=8)).max_concurrency(0)


def test_a_printed_block_count_is_traced_to_its_layout():
    printed = plan_memory(DENSE, H100, Layout(tp=4)).kv_blocks
    best = explain_blocks(DENSE, H100, printed + 40)[0]
    assert (best.layout, best.kv_cache_dtype) == (Layout(tp=4), "auto")
    assert abs(best.error) < 0.01
    left = unexplained_memory(DENSE, H100, printed, Layout(tp=4))
    [stage] = plan_memory(DENSE, H100, Layout(tp=4)).stages
    rest = stage.activation_bytes + stage.runtime_bytes
    assert left.other_bytes == pytest.approx(rest, abs=16 * stage.kv_bytes_per_token)


WINDOWED = ("gemma-4-26b-a4b", "gpt-oss-120b", "qwen3.5-397b-a17b")


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize("length", [512, 1280, 8192])
def test_short_requests_of_windowed_models_hold_fewer_tokens(name, length):
    layout = Layout(tp=8 if "397" in name else 1, pp=2)
    plan = plan_memory(MODELS[name].model, DEVICES["b200"], layout)
    held = plan.tokens_of_requests(length)
    assert held == int(plan.max_concurrency(length)) * length < plan.kv_tokens
    pool = min(stage.kv_pool_bytes for stage in plan.stages)
    asked = tokens_in_pool(plan.model, pool, plan.layout, length=length).concurrency
    assert asked == pytest.approx(plan.max_concurrency(length), rel=0.05)
    assert (
        f"{held:,} tokens of KV cache"
        in fit(plan.model, plan.device, plan.layout, length=length).sentence
    )


def test_where_all_layers_keep_all_tokens_requests_share_all_blocks():
    plan = plan_memory(DENSE, H100, Layout(tp=8))
    assert plan.tokens_of_requests(1000) == plan.kv_tokens > 0


def test_an_illegal_layout_does_not_fit_whatever_its_memory():
    answer = fit(DENSE, H100, Layout(tp=3), length=4096)
    assert answer.plan.fits
    assert not answer.fits
    assert "the layout is illegal: 64 attention heads do not divide over TP 3" in answer.sentence


def test_experts_rows_are_shared_by_their_ranks():
    def activations(layout: Layout) -> float:
        return plan_memory(MOE, DEVICES["h200"], layout).stages[0].activation_bytes

    assert activations(Layout(tp=8, ep=8)) < activations(Layout(tp=8))
    assert activations(Layout(dp=8, ep=8)) < activations(Layout(dp=8))
    assert activations(Layout(dp=8, ep=8)) > activations(Layout(tp=8, ep=8))


def test_models_without_experts_or_windows_name_no_such_part():
    assert set(plan_memory(DENSE, H100).stages[0].parts) == {
        "embedding", "norms", "attention", "MLP", "LM head", "activations", "runtime", "KV pool",
    }  # fmt: skip
    assert isinstance(DENSE, ModelSpec)
