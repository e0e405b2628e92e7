"""Case D5: Qwen3-235B-A22B in FP8 over 4 H100: two engines, the same bytes a token, not the same
memory granted (vllm issue 21348)."""

import pytest

from labkit.plan.layout import Layout
from labkit.plan.memory_questions import tokens_in_pool
from labkit.plan.model_presets import MODELS

MODEL, TP4 = MODELS["qwen3-235b-a22b-fp8"].model, Layout(tp=4)
VLLM_POOL, VLLM_TOKENS = 8.11 * 2**30, 178_880
SGLANG_POOL, SGLANG_TOKENS = 2 * 8.84e9, 367_404


def test_a_token_takes_47_kib_on_each_rank():
    assert tokens_in_pool(MODEL, VLLM_POOL, TP4).bytes_per_token == 47 * 1024


@pytest.mark.parametrize(
    ("pool", "tokens"), [(VLLM_POOL, VLLM_TOKENS), (SGLANG_POOL, SGLANG_TOKENS)]
)
def test_both_pools_hold_what_was_printed(pool, tokens):
    assert tokens_in_pool(MODEL, pool, TP4).tokens == pytest.approx(tokens, rel=0.015)


def test_neither_engine_stores_tokens_more_tightly():
    per_token = [VLLM_POOL / VLLM_TOKENS, SGLANG_POOL / SGLANG_TOKENS]
    assert per_token[0] == pytest.approx(per_token[1], rel=0.02)


def test_with_four_kv_heads_eight_ranks_keep_no_less_each():
    four, eight = (tokens_in_pool(MODEL, VLLM_POOL, Layout(tp=tp)) for tp in (4, 8))
    assert four.tokens == eight.tokens
