"""Step time by terms: the textbook's facts, and what the full model counts besides."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.plan.device_presets import DEVICES
from labkit.plan.engine_options import EngineOptions
from labkit.plan.hardware import LinkSpec
from labkit.plan.layout import Layout
from labkit.plan.link_presets import LINKS
from labkit.plan.model_presets import MODELS, resolve_model
from labkit.plan.rank_weights import rank_share
from labkit.plan.roofline import decode_intensity, prefill_intensity, ridge
from labkit.plan.serving_presets import vllm_all_reduce
from labkit.plan.step_system import Efficiency, Fidelity, LinkScaled, System
from labkit.plan.step_work import expected_coverage, stage_works
from labkit.plan.steptime import TERMS, decode_step, prefill_step
from labkit.plan.topology import Topology

H100, TEXTBOOK_GPU = DEVICES["h100"], DEVICES["textbook-80gb"]
QWEN = resolve_model("qwen2.5-72b")
DEEPSEEK = resolve_model("deepseek-v3")
EFFICIENCY = Efficiency(0.9, 0.5, None, 40e-6, 1e-3, 20e-6)


def textbook(link, gpus=8):
    topology = Topology.for_device(TEXTBOOK_GPU, gpus, link)
    return System(TEXTBOOK_GPU, topology, fidelity=Fidelity.TEXTBOOK)


def full(gpus=8, efficiency=EFFICIENCY, device=H100, **more):
    return System(device, Topology.for_device(device, gpus), efficiency=efficiency, **more)


def milliseconds(system, batch, *terms):
    steps = [decode_step(QWEN, system, Layout(tp=tp), batch) for tp in (2, 4, 8)]
    return [1e3 * sum(step.terms[term] for term in terms or TERMS) for step in steps]


def test_t1_t2_t3_on_textbook_nvlink():
    system = textbook("textbook-nvlink")
    collective = "all-reduce latency", "all-reduce transfer"
    assert milliseconds(system, 1, "weights") == pytest.approx([21.7, 10.9, 5.4], abs=0.05)
    assert milliseconds(system, 1, *collective) == pytest.approx([0.65, 1.9, 4.5], rel=0.02)
    assert milliseconds(system, 1) == pytest.approx([22.4, 12.8, 9.9], abs=0.06)


def test_t4_on_textbook_pcie_tp8_is_no_faster_than_tp4():
    system = textbook("textbook-pcie")
    for batch, expected in ((1, 11.4), (64, 22.9)):
        collective = milliseconds(system, batch, "all-reduce latency", "all-reduce transfer")
        assert collective[-1] == pytest.approx(expected, abs=0.05)
        _, tp4, tp8 = milliseconds(system, batch)
        assert tp8 > tp4


def test_t6_two_tp4_replicas_bring_more_tokens_than_tp8_and_take_longer_for_each():
    system = textbook("textbook-nvlink")
    at = {
        (tp, batch): decode_step(QWEN, system, Layout(tp=tp), batch)
        for tp in (4, 8)
        for batch in (1, 64)
    }
    more = 2 * at[4, 64].tokens_per_second / at[8, 64].tokens_per_second - 1
    assert more == pytest.approx(0.58, abs=0.01)
    assert at[4, 64].seconds / at[8, 64].seconds - 1 == pytest.approx(0.26, abs=0.005)
    assert at[4, 1].seconds / at[8, 1].seconds - 1 == pytest.approx(0.29, abs=0.005)
    assert at[4, 1].seconds < 13e-3
    assert at[8, 1].seconds < 10e-3 < at[4, 1].seconds


def test_t14_a_7b_on_pcie_is_slower_over_8_gpus_than_on_one():
    system, model = textbook("textbook-pcie"), resolve_model("llama-2-7b")
    one, eight = (decode_step(model, system, Layout(tp=tp), parameters=7e9) for tp in (1, 8))
    assert 1e3 * one.seconds == pytest.approx(4.2, abs=0.05)
    assert 1e3 * eight.seconds == pytest.approx(5.0, abs=0.05)
    assert eight.longest_term == "all-reduce latency"


def test_e1_expected_coverage_of_experts():
    shapes = [(8, 2, 16), (64, 6, 32), (256, 8, 64), (256, 8, 256)]
    found = [expected_coverage(*shape) for shape in shapes]
    assert found[:3] == pytest.approx([0.99, 0.957, 0.869], abs=0.0005)
    assert found[3] > 0.999


LAYOUTS = st.sampled_from([Layout(tp=tp, pp=pp) for tp in (1, 2, 4, 8) for pp in (1, 2, 3, 7)])


@settings(max_examples=60, deadline=None)
@given(LAYOUTS, st.integers(1, 300), st.integers(0, 40_000), st.integers(1, 9))
def test_terms_sum_to_the_seconds_and_none_is_negative(layout, batch, context, microbatches):
    system = full(64)
    for step in (
        decode_step(QWEN, system, layout, batch, context),
        decode_step(QWEN, system, layout, batch, context, microbatches=microbatches),
        prefill_step(QWEN, system, layout, context + 1, batch, microbatches=microbatches),
    ):
        assert tuple(step.terms) == TERMS
        assert step.seconds == pytest.approx(sum(step.terms.values()))
        assert min(step.terms.values()) >= 0
        assert 0 < step.utilization <= 1


@settings(max_examples=40, deadline=None)
@given(LAYOUTS, st.integers(1, 200), st.integers(0, 30_000))
def test_more_sequences_or_tokens_never_take_less_time(layout, batch, context):
    system = full(64)
    step = decode_step(QWEN, system, layout, batch, context, microbatches=1).seconds
    assert step <= decode_step(QWEN, system, layout, batch + 1, context, microbatches=1).seconds
    assert step <= decode_step(QWEN, system, layout, batch, context + 100, microbatches=1).seconds


@settings(max_examples=40, deadline=None)
@given(LAYOUTS, st.integers(1, 200), st.floats(1.01, 8))
def test_a_faster_memory_or_link_never_makes_a_step_longer(layout, batch, factor):
    slow = full(64)
    memory = replace(H100, memory_bandwidth=factor * H100.memory_bandwidth)
    link = replace(LINKS["nvlink4"], bandwidth=factor * LINKS["nvlink4"].bandwidth)
    faster = (
        full(64, device=memory),
        System(H100, Topology.for_device(H100, 64, link), efficiency=EFFICIENCY),
    )
    before = decode_step(QWEN, slow, layout, batch, 2000).seconds
    for system in faster:
        assert decode_step(QWEN, system, layout, batch, 2000).seconds <= before * (1 + 1e-9)


def test_the_embedding_is_held_but_not_read():
    (work,) = stage_works(QWEN, Layout(tp=8))
    embedding = QWEN.embedding[0].total_bytes
    whole = sum(n * m.total_bytes for m, n in QWEN.matrices if m.part == "norms")
    sharded = (QWEN.weight_bytes - embedding - whole) / 8
    assert work.weight_bytes == pytest.approx(sharded + whole, rel=1e-6)


def test_kv_heads_that_are_copied_are_read_by_every_rank():
    at = {tp: decode_step(QWEN, full(16), Layout(tp=tp), 32, 8000) for tp in (4, 8, 16)}
    assert at[4].terms["KV cache"] == pytest.approx(2 * at[8].terms["KV cache"])
    assert at[16].terms["KV cache"] == pytest.approx(at[8].terms["KV cache"])


def test_a_latent_cache_is_not_divided_by_tp():
    at = [
        decode_step(DEEPSEEK, full(8), Layout(tp=tp), 32, 8000).terms["KV cache"] for tp in (1, 8)
    ]
    assert at[0] == pytest.approx(at[1])


def test_a_cache_in_8_bits_is_read_in_half_the_time():
    options = EngineOptions(kv_cache_dtype="fp8")
    wide = decode_step(QWEN, full(), Layout(tp=8), 32, 8000)
    narrow = decode_step(QWEN, full(), Layout(tp=8), 32, 8000, options)
    assert narrow.terms["KV cache"] == pytest.approx(wide.terms["KV cache"] / 2)


def test_a_window_stops_the_cache_read_from_growing():
    model = resolve_model("gpt-oss-120b")
    short, long, longer = (
        decode_step(model, full(), Layout(tp=8), 8, context).terms["KV cache"]
        for context in (128, 20_000, 40_000)
    )
    assert short < long < longer
    assert longer < 2 * long
    windows = [work.window for work in stage_works(model, Layout())[0].caches]
    assert {128, None} == set(windows)


def test_prefill_is_bound_by_computing_and_decode_by_reading():
    decode = decode_intensity(QWEN, 64, 2000)
    prefill = prefill_intensity(QWEN, 2000)
    assert decode.flops_per_byte < ridge(H100) < prefill.flops_per_byte
    assert prefill.is_compute_bound(H100)
    assert not decode.is_compute_bound(H100)
    step = prefill_step(QWEN, full(), Layout(tp=8), 8192)
    assert step.terms["compute"] > step.terms["weights"]
    assert decode_step(QWEN, full(), Layout(tp=8), 16, 2000).terms["compute"] == 0


def test_at_batch_1_a_mixture_reads_like_its_active_size_and_at_256_nearly_all():
    one, many = (
        decode_intensity(DEEPSEEK, batch, 0).weight_bytes / DEEPSEEK.weight_bytes
        for batch in (1, 256)
    )
    active = DEEPSEEK.num_active_parameters / DEEPSEEK.num_parameters
    assert one == pytest.approx(active, rel=0.05)
    assert many > 0.97


def test_copies_of_attention_send_tokens_to_experts_and_tp_alone_reduces():
    system = full(16)
    reduced = decode_step(DEEPSEEK, system, Layout(tp=16), 64, 2000)
    sent = decode_step(DEEPSEEK, system, Layout(tp=1, dp=16, ep=16), 64, 2000)
    assert reduced.terms["all-to-all"] == 0 < reduced.terms["all-reduce transfer"]
    assert sent.terms["all-reduce transfer"] == 0 < sent.terms["all-to-all"]
    assert sent.terms["KV cache"] < reduced.terms["KV cache"] / 8


def test_an_uneven_expert_load_costs_time():
    even, uneven = (
        decode_step(
            DEEPSEEK,
            full(16, Efficiency(0.9, 0.5, balancedness=balance)),
            Layout(tp=1, dp=16, ep=16),
            4096,
            100,
        )
        for balance in (1.0, 0.5)
    )
    assert uneven.terms["all-to-all"] > even.terms["all-to-all"]
    assert uneven.terms["compute"] > even.terms["compute"]


def test_tp_across_nodes_sends_every_reduction_over_the_network():
    near = System(H100, Topology.for_device(H100, 64), vllm_all_reduce())
    across = System(H100, Topology.for_device(H100, 64), vllm_all_reduce(), tp_inside=False)
    layout = Layout(tp=8, pp=8)
    inside, outside = (decode_step(QWEN, system, layout, 64, 2000) for system in (near, across))
    reduce = "all-reduce transfer", "all-reduce latency"
    assert sum(outside.terms[t] for t in reduce) > 5 * sum(inside.terms[t] for t in reduce)
    assert inside.terms["pipeline sends"] > outside.terms["pipeline sends"]
    assert inside.seconds < outside.seconds


def test_a_recorded_all_reduce_is_scaled_to_a_wider_link():
    b200 = DEVICES["b200"]
    narrow = System(H100, Topology.for_device(H100, 8), vllm_all_reduce())
    wide = System(b200, Topology.for_device(b200, 8), vllm_all_reduce())
    before, after = (s.all_reduce(Layout(tp=8)).terms(8, 2**20) for s in (narrow, wide))
    assert after.latency_seconds == before.latency_seconds
    assert after.transfer_seconds == pytest.approx(before.transfer_seconds / 2)
    assert LinkScaled(narrow.all_reduce(Layout(tp=8)), 2.0).wire_bytes(8, 100) > 0


def test_the_busiest_rank_holds_a_whole_head():
    key = next(m for m, _ in QWEN.matrices if m.name == "self_attn.k_proj")
    assert [rank_share(key, tp) for tp in (1, 2, 8, 16)] == [1, 1 / 2, 1 / 8, 1 / 8]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: decode_step(QWEN, full(), Layout(), 0), "batch is 0"),
        (lambda: decode_step(QWEN, full(), Layout(), 1.5), "batch is 1.5"),
        (lambda: decode_step(QWEN, full(), Layout(), 1, math.nan), "context is nan"),
        (lambda: decode_step(QWEN, full(), Layout(), 1, -1), "context is -1"),
        (lambda: decode_step(QWEN, full(), Layout(), 1, microbatches=0), "microbatches is 0"),
        (lambda: decode_step(QWEN, full(), Layout(), parameters=7e9), "parameters belongs"),
        (lambda: prefill_step(QWEN, full(), Layout(), 0), "prompt_tokens is 0"),
        (lambda: prefill_step(QWEN, textbook("pcie4"), Layout(), 9), "TEXTBOOK knows decode"),
        (lambda: decode_step(QWEN, textbook("pcie4"), Layout(dp=2)), "not DP 2"),
        (lambda: Efficiency(memory=0), "memory is 0"),
        (lambda: Efficiency(compute=1.5), "compute is 1.5"),
        (lambda: Efficiency(balancedness=math.nan), "balancedness is nan"),
        (lambda: Efficiency(layer_overhead=-1), "layer_overhead is -1"),
        (lambda: Efficiency(step_overhead=math.inf), "step_overhead is inf"),
    ],
)
def test_bad_values_are_refused_by_name(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_collectives_that_are_no_all_reduce_are_refused():
    from labkit.plan.collective_presets import COLLECTIVE_PRESETS

    preset = COLLECTIVE_PRESETS["h100_sxm/nccl/2.27.3/all_gather"]
    with pytest.raises(ValueError, match="prices all_gather; give an all_reduce"):
        System(H100, Topology.for_device(H100, 8), preset)


def test_a_link_of_your_own_is_taken_as_it_is():
    link = LinkSpec("mine", "mine", 10e9, 20e-6, LINKS["pcie4"].source, "assumed")
    system = System(H100, Topology.for_device(H100, 2, link))
    step = decode_step(QWEN, system, Layout(tp=2), 1)
    assert step.terms["all-reduce latency"] == pytest.approx(160 * 2 * 20e-6)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_preset_can_be_timed_and_its_terms_are_finite(name):
    model = resolve_model(name)
    for layout in (Layout(), Layout(tp=2, pp=2), Layout(tp=2, dp=4, ep=8)):
        for step in (
            decode_step(model, full(), layout, 8, 3000),
            prefill_step(model, full(), layout, 3000, 2),
        ):
            assert all(0 <= seconds < 60 for seconds in step.terms.values())
            assert step.terms["weights"] > 0


def test_the_busiest_of_more_ranks_reads_more_experts_at_small_batches():
    def weights(name: str, layout: Layout, batch: int) -> float:
        system = System(DEVICES["h200"], Topology.for_device(DEVICES["h200"], 8))
        return decode_step(MODELS[name].model, system, layout, batch, 1000).terms["weights"]

    for batch in (1, 4):
        cut, dealt = (weights("mixtral-8x7b", Layout(2, ep=ep), batch) for ep in (1, 2))
        assert cut < dealt < 1.5 * cut
        cut, dealt = (weights("deepseek-v3", Layout(8, ep=ep), batch) for ep in (1, 8))
        assert cut < dealt < 2.5 * cut
    cut, dealt = (weights("mixtral-8x7b", Layout(2, ep=ep), 512) for ep in (1, 2))
    assert dealt == pytest.approx(cut, rel=1e-3)


def test_two_experts_of_eight_on_two_ranks_are_1_43_on_the_busier_one():
    [layer] = stage_works(MODELS["mixtral-8x7b"].model, Layout(2, ep=2))[0].experts
    assert layer.touched(1) == pytest.approx(1 + 3 / 7, rel=0.06)
