"""Clients in a closed loop: what the cache holds runs, the others wait, prefills share steps."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.plan.closed_loop import closed_loop, joined_seconds, with_prefills
from labkit.plan.device_presets import DEVICES
from labkit.plan.engine_options import EngineOptions
from labkit.plan.layout import Layout
from labkit.plan.model_presets import resolve_model
from labkit.plan.serving_rows import ServingRow
from labkit.plan.steptime import Efficiency, System, decode_step, prefill_step
from labkit.plan.topology import Topology

LLAMA = resolve_model("llama-3.1-8b")
H100 = DEVICES["h100"]
SYSTEM = System(
    H100, Topology.for_device(H100, 8), None, Efficiency(0.9, 0.5, 0.7, 40e-6, 1e-3, 30e-6, 10e-3)
)
ROW = ServingRow(1, 2000, 500, 16)


def test_one_client_sees_a_bare_step_and_its_own_prefill():
    found = closed_loop(LLAMA, SYSTEM, replace(ROW, concurrency=1))
    assert found.tpot == found.decode.seconds == decode_step(LLAMA, SYSTEM, None, 1, 2250).seconds
    prefill = prefill_step(LLAMA, SYSTEM, None, 2000).seconds
    assert found.ttft == pytest.approx(10e-3 + found.decode.seconds / 2 + prefill)


def test_each_of_the_others_prefills_about_once_in_a_sequences_life():
    found = closed_loop(LLAMA, SYSTEM, ROW)
    added = joined_seconds(found.prefill, found.decode)
    assert 0.9 * 15 * added < ROW.output_tokens * found.prefill_share < 15 * added


def test_clients_beyond_the_caches_capacity_wait_by_littles_law():
    held = closed_loop(LLAMA, SYSTEM, replace(ROW, concurrency=32), 32)
    crowd = closed_loop(LLAMA, SYSTEM, replace(ROW, concurrency=96), 32)
    assert held.running == crowd.running == 32
    assert held.waiting == 0
    whole = crowd.ttft + ROW.output_tokens * crowd.tpot
    served = ROW.output_tokens * held.tpot + held.prefill.seconds
    assert whole == pytest.approx(3 * served, rel=0.05)


def test_sequences_that_grow_are_pushed_out_and_prompts_wait_in_front():
    talker = closed_loop(LLAMA, SYSTEM, ServingRow(1, 100, 4000, 64), 32)
    reader = closed_loop(LLAMA, SYSTEM, ServingRow(1, 4000, 100, 64), 32)
    assert talker.stall * 4000 > 0.9 * talker.waiting
    assert reader.stall * 100 < 0.05 * reader.waiting


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 200), st.integers(1, 6000), st.integers(1, 6000), st.sampled_from([1, 2, 4, 8])
)
def test_more_clients_never_see_shorter_times(clients, prompt, output, tp):
    few, more = (
        closed_loop(LLAMA, SYSTEM, ServingRow(tp, prompt, output, count), 100)
        for count in (clients, clients + 1)
    )
    assert few.tpot <= more.tpot * (1 + 1e-9)
    assert few.ttft <= more.ttft * (1 + 1e-9)
    assert few.decode.seconds <= few.tpot


MIXTURES = ("deepseek-v3", "mixtral-8x7b", "gpt-oss-120b", "qwen3.5-397b-a17b", "llama-4-scout")
MANY = System(H100, Topology.for_device(H100, 256), None, SYSTEM.efficiency)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(MIXTURES),
    st.integers(1, 120),
    st.integers(1, 500),
    st.integers(1, 20),
    st.sampled_from([(1, 1, 1), (8, 1, 1), (2, 1, 4), (4, 4, 1), (2, 2, 2)]),
    st.booleans(),
)
def test_more_clients_of_a_mixture_never_see_shorter_times(
    name, clients, prompt, output, axes, spread
):
    """Short answers bring a prefill or more to every step; its experts are read once."""
    tp, pp, dp = axes
    few, more = (
        closed_loop(
            resolve_model(name),
            MANY,
            ServingRow(tp, prompt, output, count, pp=pp, dp=dp, ep=tp * dp if spread else 1),
        )
        for count in (clients, clients + 1)
    )
    assert few.tpot <= more.tpot * (1 + 1e-9)
    assert few.ttft <= more.ttft * (1 + 1e-9)


def test_prompts_that_share_a_step_read_its_weights_once():
    """8 tokens, then one of output: the counter-example of prefills that each read their own."""
    model, many = resolve_model("deepseek-v3"), System(H100, Topology.for_device(H100, 8))
    six, seven = (closed_loop(model, many, ServingRow(2, 8, 1, count)) for count in (6, 7))
    assert six.tpot <= seven.tpot
    prefill = prefill_step(model, many, Layout(2), 256)
    decode = decode_step(model, many, Layout(2), 1, 100)
    one, ten = (joined_seconds(prefill, decode, number) for number in (1, 10))
    rest = joined_seconds(prefill, prefill)
    assert one > rest
    assert ten - one == pytest.approx(9 * rest)
    assert joined_seconds(prefill, decode, 0.1) == pytest.approx(one / 10)


def test_chunks_of_a_prompt_read_no_weights_that_decode_reads_anyway():
    chunked, whole = (prefill_step(LLAMA, SYSTEM, None, 4096, 4, microbatches=n) for n in (4, 1))
    decode = decode_step(LLAMA, SYSTEM, None, 8, 1000)
    assert chunked.terms["weights"] == pytest.approx(4 * decode.terms["weights"])
    assert joined_seconds(chunked, decode) == pytest.approx(joined_seconds(whole, decode), rel=0.1)


def test_each_microbatch_of_decode_may_carry_a_prompt():
    """A prompt crosses each stage once, as one of decode's microbatches does."""
    model, layout = resolve_model("deepseek-v3"), Layout(4, 4)
    prefill = prefill_step(model, MANY, layout, 512)
    decode = decode_step(model, MANY, layout, 8, 100)
    assert (prefill.microbatches, decode.microbatches) == (1, 4)
    more = prefill.terms["weights"] - decode.terms["weights"] / 4
    assert more > 0
    rest = joined_seconds(prefill, prefill)
    assert joined_seconds(prefill, decode) == pytest.approx(more + rest)
    assert joined_seconds(prefill, decode, 6) == pytest.approx(4 * more + 6 * rest)


@given(st.floats(1e-3, 0.1), st.floats(0, 0.1), st.integers(1, 5000), st.floats(1e-3, 100))
def test_the_step_with_prefills_solves_its_own_equation(step, added, output, prefill):
    found = with_prefills(step, added, output, prefill)
    life = output * found
    assert found == pytest.approx(step + added * life / (life + prefill), rel=1e-6)


def test_a_cache_in_8_bits_shortens_every_step():
    options = EngineOptions(kv_cache_dtype="fp8")
    narrow, wide = (closed_loop(LLAMA, SYSTEM, ROW, None, o) for o in (options, None))
    assert narrow.tpot < wide.tpot


def test_copies_of_attention_share_the_clients():
    model, system = (
        resolve_model("deepseek-v3"),
        System(H100, Topology.for_device(H100, 320), None, SYSTEM.efficiency),
    )
    alone = closed_loop(model, system, ServingRow(16, 1000, 1000, 64))
    shared = closed_loop(model, system, ServingRow(1, 1000, 1000, 64, dp=16, ep=16))
    assert shared.decode.terms["KV cache"] < alone.decode.terms["KV cache"] / 8
    assert shared.decode.terms["sequence overhead"] == pytest.approx(
        alone.decode.terms["sequence overhead"] / 16
    )


def test_e6_units_of_32_and_320_gpus_can_be_timed():
    model = resolve_model("deepseek-v3")
    h800 = System(H100, Topology.for_device(H100, 320), None, SYSTEM.efficiency)
    unit = Layout(tp=4, dp=8, ep=32)
    prefill = prefill_step(model, h800, unit, 4096, 8)
    decode = decode_step(model, h800, Layout(tp=4, dp=80, ep=320), 80 * 32, 4000)
    assert prefill.longest_term in ("compute", "all-to-all", "all-reduce transfer")
    assert decode.terms["weights"] < 0.01
    assert decode.tokens_per_second > 20_000
