"""Fact D6: pools of their own for prefill and decode, each sized by its own limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labkit.plan.device_presets import device
from labkit.plan.engine_options import EngineOptions
from labkit.plan.kv_transfer import transfer_seconds
from labkit.plan.layout import Layout
from labkit.plan.model_presets import resolve_model
from labkit.plan.search import SLO, Objective, Question, compare
from labkit.plan.serving_point import serving_points

LONG = Question(
    resolve_model("llama-3.1-70b"),
    device("h100"),
    16,
    Objective.THROUGHPUT_PER_GPU,
    prompt_tokens=8192,
    output_tokens=256,
    slo=SLO(ttft=2.0, tpot=0.03),
    allow_disaggregation=True,
)
NAMED = [Layout(8, replicas=2), Layout(4, replicas=4), Layout(4, 2, replicas=2)]


@pytest.fixture(scope="module")
def answer():
    return compare(LONG, NAMED)


def test_pools_keep_both_limits_on_the_gpus_there_are(answer):
    pools = [each for each in answer.ranked if each.pools is not None]
    assert pools
    for found in pools:
        assert found.ttft <= 2.0 + 1e-9
        assert found.tpot <= 0.03
        assert found.gpus <= 16
        assert found.gpus == found.layout.world_size + found.prefill_layout.world_size
        assert found.tokens_per_second == pytest.approx(found.pools.goodput * 256)
        assert found.title.startswith("prefill ")


def test_an_fp8_cache_sends_half_the_bytes():
    options = EngineOptions(kv_cache_dtype="fp8")
    question = replace(LONG, options=options)
    found = [each for each in compare(question, NAMED).ranked if each.pools is not None]
    assert found
    for each in found:
        worker, link = each.pools.prefill, question.links.between
        links = worker.layout.tp * worker.layout.pp
        assert worker.transfer == transfer_seconds(
            LONG.model, 8192, link, links=links, kv_bytes_per_element=1.0
        )
        wide = transfer_seconds(LONG.model, 8192, link, links=links)
        assert worker.transfer == pytest.approx(wide / 2, rel=0.01)


def test_copies_of_attention_prefill_side_by_side():
    """The unit of E6: attention TP 4 x DP 8, EP 32, on 32 GPUs."""
    model, unit = resolve_model("deepseek-v3"), Layout(4, 1, 8, 32, 4)
    question = replace(
        LONG, model=model, device=device("h200"), gpus=128, slo=SLO(ttft=4.0, tpot=0.1)
    )
    found = next(each for each in compare(question, [unit]).ranked if each.pools is not None)
    assert found.ttft <= 4.0 + 1e-9
    worker = found.pools.prefill
    assert worker.rate * worker.step.seconds > 1
    assert worker.rate * worker.step.seconds <= 8


def test_a_decode_pool_runs_undisturbed(answer):
    found = next(each for each in answer.ranked if each.pools is not None)
    points = serving_points(LONG, found.layout, own_prefill=False)
    assert found.tpot == points(found.batch).decode.seconds
    assert found.point.prefill_share == 0
    assert any("Prefill has GPUs of its own" in reason for reason in found.reasons_for)
    assert any("KV cache crosses to the decode pool" in reason for reason in found.reasons_against)


def test_long_prompts_under_tight_limits_are_what_pools_are_for(answer):
    """Eight thousand tokens of prompt: in one pool prefills lengthen every step."""
    tight = replace(LONG, slo=SLO(ttft=2.0, tpot=0.018))
    best = compare(tight, NAMED).best
    assert best.pools is not None
    colocated = [each for each in compare(tight, NAMED).ranked if each.pools is None]
    assert all(each.tokens_per_second < best.tokens_per_second for each in colocated)


def test_a_stricter_ttft_takes_more_gpus_for_prefill_or_gives_less(answer):
    def split(ttft):
        found = compare(replace(LONG, slo=SLO(ttft, 0.03)), NAMED).ranked
        return next((each for each in found if each.pools is not None), None)

    loose, tight = split(4.0), split(1.2)
    assert loose.tokens_per_second >= tight.tokens_per_second
    assert split(0.05) is None


def test_layouts_of_one_pool_are_found_beside_pools(answer):
    assert {each.layout for each in answer.ranked if each.pools is None} <= set(NAMED)
    for layout in NAMED:
        assert answer.find(layout) is not None
