"""Case D2: Llama-3.1-8B on an RTX 3090: 20k starts, 29k does not, 35k does (vllm issue 10517)."""

import pytest

from labkit.plan.device_presets import DEVICES
from labkit.plan.engine_options import EngineOptions
from labkit.plan.layout import Layout
from labkit.plan.memory import plan_memory
from labkit.plan.memory_overhead import activation_bytes
from labkit.plan.memory_questions import fit, tokens_in_pool, unexplained_memory
from labkit.plan.model_presets import MODELS

GIB = 2**30
MODEL, CARD = MODELS["llama-3.1-8b"].model, DEVICES["rtx-3090"]
UNCHUNKED_PEAKS = {20_000: 17.06, 29_000: 17.98}
"""Length -> weights and activations at their peak, GiB, as printed."""


def test_the_printed_pool_is_usable_memory_less_peak_and_the_rest():
    pool = 0.90 * CARD.memory_bytes - (17.06 + 0.35) * GIB
    assert pool / GIB == pytest.approx(3.81, abs=0.005)
    assert tokens_in_pool(MODEL, pool, length=20_000).tokens == pytest.approx(31_232, abs=40)
    assert tokens_in_pool(MODEL, 3.81 * GIB, length=20_000).concurrency == pytest.approx(
        1.56, abs=0.01
    )
    later = 0.90 * CARD.memory_bytes - (17.98 + 0.35) * GIB
    assert tokens_in_pool(MODEL, later).blocks == pytest.approx(1478, abs=3)


@pytest.mark.parametrize(("length", "peak"), UNCHUNKED_PEAKS.items())
def test_a_prompt_in_one_piece_takes_activations_in_proportion(length, peak):
    modelled = MODEL.weight_bytes + activation_bytes(MODEL, Layout(), length, 256)
    assert modelled / GIB == pytest.approx(peak, abs=0.06)


def test_the_growth_of_the_peak_is_the_width_of_the_mlp():
    grown = activation_bytes(MODEL, Layout(), 29_000, 1) - activation_bytes(
        MODEL, Layout(), 20_000, 1
    )
    assert grown / GIB == pytest.approx(17.98 - 17.06, rel=0.015)


def options(tokens: int) -> EngineOptions:
    return EngineOptions(max_num_batched_tokens=tokens)


def test_29k_is_refused_where_35k_starts_because_its_prefill_is_chunked():
    assert fit(MODEL, CARD, options=options(20_000), length=20_000).concurrency == pytest.approx(
        1.56, abs=0.06
    )
    refused = fit(MODEL, CARD, options=options(29_000), length=29_000)
    assert refused.concurrency == pytest.approx(0.82, abs=0.05)
    assert not refused.fits
    assert fit(MODEL, CARD, options=options(512), length=35_000).fits
    assert fit(MODEL, CARD, options=options(512), length=45_000).fits


def test_a_longer_step_never_leaves_more_room():
    pools = [
        plan_memory(MODEL, CARD, options=options(n)).kv_tokens for n in range(512, 40_000, 512)
    ]
    assert pools == sorted(pools, reverse=True)


def test_what_the_log_leaves_over_is_found_from_its_blocks():
    left = unexplained_memory(MODEL, CARD, 1952, options=EngineOptions(), weight_bytes=14.99 * GIB)
    assert left.other_bytes / GIB == pytest.approx(17.06 - 14.99 + 0.35, abs=0.02)
