"""Prefill and decode apart: KV transfer, the prefill queue, pools matched by rate (D3, D6, D7)."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.device_presets import DEVICES
from labkit.plan.disaggregation import Workload, decode_worker, match_pools, prefill_worker
from labkit.plan.engine_options import CACHE_BYTES, EngineOptions
from labkit.plan.kv_transfer import longest_quick_prompt, transfer_bytes, transfer_seconds
from labkit.plan.layout import Layout
from labkit.plan.link_presets import LINKS
from labkit.plan.model_presets import resolve_model
from labkit.plan.prefill_queue import closed_queue_ttft, largest_rate, open_queue_wait
from labkit.plan.step_system import Efficiency, System
from labkit.plan.topology import Topology

QWEN = resolve_model("qwen2.5-72b")
H100 = DEVICES["h100"]
SYSTEM = System(H100, Topology.for_device(H100, 8), None, Efficiency(0.9, 0.5, 0.7, 40e-6, 1e-3))
FIFTY = replace(LINKS["infiniband-ndr"], bandwidth=50e9, hop_latency=0.0)
WORK = Workload(4000, 500, ttft=2.0, tpot=0.03)


def test_d7_8k_tokens_of_the_72b_take_54_ms_at_50_gigabytes_a_second():
    assert transfer_bytes(QWEN, 8192) == pytest.approx(2.7e9, rel=0.01)
    assert transfer_seconds(QWEN, 8192, FIFTY) == pytest.approx(0.054, abs=0.0005)


def test_d7_the_hop_is_under_50_ms_up_to_some_prompt_and_not_beyond():
    most = longest_quick_prompt(QWEN, FIFTY)
    assert transfer_seconds(QWEN, most, FIFTY) <= 0.05 < transfer_seconds(QWEN, most + 1, FIFTY)
    assert 7600 < most < 7700
    assert longest_quick_prompt(QWEN, FIFTY, links=4) == pytest.approx(4 * most, abs=4)
    assert longest_quick_prompt(QWEN, replace(FIFTY, hop_latency=1.0)) == 0


def pools(gpus=24, workload=WORK, link=FIFTY, capacity=200):
    prefill = prefill_worker(QWEN, SYSTEM, Layout(tp=4), workload, link)
    decode = decode_worker(QWEN, SYSTEM, Layout(tp=4), workload, capacity)
    return match_pools(prefill, decode, workload, gpus)


def test_the_largest_batch_keeps_tpot_and_one_more_breaks_it():
    decode = decode_worker(QWEN, SYSTEM, Layout(tp=4), WORK, 200)
    assert decode.step.seconds <= WORK.tpot
    from labkit.plan.steptime import decode_step

    context = WORK.prompt_tokens + WORK.output_tokens / 2
    more = decode_step(QWEN, SYSTEM, Layout(tp=4), decode.batch + 1, context)
    assert more.seconds > WORK.tpot


def test_matched_pools_keep_both_limits_on_the_gpus_there_are():
    found = pools()
    assert found.gpus <= 24
    assert found.ttft <= WORK.ttft
    assert found.tpot <= WORK.tpot
    rates = found.num_prefill * found.prefill.rate, found.num_decode * found.decode.rate
    assert found.goodput == min(rates)
    assert found.bound_by == ("prefill" if rates[0] <= rates[1] else "decode")


def test_no_other_number_of_workers_on_these_gpus_does_better():
    found = pools()
    best = max(
        min(some * found.prefill.rate, most * found.decode.rate)
        for some in range(1, 7)
        for most in range(1, 7)
        if 4 * (some + most) <= 24
    )
    assert found.goodput == pytest.approx(best)


def test_longer_answers_take_more_decode_workers_and_longer_prompts_more_prefill_workers():
    talkers = pools(48, replace(WORK, output_tokens=2000))
    readers = pools(48, replace(WORK, output_tokens=100))
    assert talkers.num_decode / talkers.num_prefill > readers.num_decode / readers.num_prefill


def test_looser_limits_and_more_gpus_never_lower_goodput():
    assert pools(32).goodput >= pools(24).goodput
    assert pools(workload=replace(WORK, tpot=0.05)).goodput >= pools().goodput
    assert pools(workload=replace(WORK, ttft=4.0)).goodput >= pools().goodput


@pytest.mark.parametrize("dtype", CACHE_BYTES)
def test_caches_travel_in_the_dtype_they_are_kept_in(dtype):
    plain, narrow = (
        prefill_worker(QWEN, SYSTEM, Layout(tp=4), WORK, FIFTY, options=options)
        for options in (None, EngineOptions(kv_cache_dtype=dtype))
    )
    assert narrow.transfer == pytest.approx(plain.transfer * CACHE_BYTES[dtype] / 2)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"workload": replace(WORK, ttft=0.1)}, "no rate keeps a TTFT of 0.1 s"),
        ({"link": replace(FIFTY, bandwidth=1e8)}, "so no rate keeps a TTFT"),
        ({"workload": replace(WORK, tpot=0.001)}, "more than the TPOT of 0.001 s"),
        ({"gpus": 7}, r"takes 4 \+ 4 GPUs; there are 7"),
        ({"capacity": 0}, "capacity is 0"),
    ],
)
def test_what_cannot_be_is_refused_with_the_numbers(change, named):
    with pytest.raises(ValueError, match=named):
        pools(**change)


@pytest.mark.parametrize("field", ["prompt_tokens", "output_tokens", "ttft", "tpot"])
@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_a_workload_that_cannot_be_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"{field} is"):
        replace(WORK, **{field: value})


@given(st.floats(0.01, 5), st.floats(0.001, 100), st.integers(1, 20))
def test_the_largest_rate_just_keeps_the_wait(service, wait, workers):
    rate = largest_rate(service, wait, workers)
    assert open_queue_wait(rate, service, workers) == pytest.approx(wait, rel=1e-4)
    assert open_queue_wait(workers / service * 1.001, service, workers) == math.inf


def test_queues_refuse_bad_numbers_by_name():
    for call, named in (
        (lambda: closed_queue_ttft(0, 0.1), "clients is 0"),
        (lambda: closed_queue_ttft(1, 0.0), "service_seconds is 0"),
        (lambda: closed_queue_ttft(1, 0.1, 0), "workers is 0"),
        (lambda: open_queue_wait(-1, 0.1), "rate is -1"),
        (lambda: transfer_seconds(QWEN, 0, FIFTY), "prompt_tokens is 0"),
        (lambda: transfer_seconds(QWEN, 1, FIFTY, links=0), "links is 0"),
    ):
        with pytest.raises(ValueError, match=named):
            call()
