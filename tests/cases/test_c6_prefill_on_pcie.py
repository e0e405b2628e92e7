"""Case C6: over PCIe a split prefill loses to a layer split, and decode gains only from long KV
(exllamav2 issue 734, llama.cpp PR 19378)."""

from dataclasses import replace

import pytest

from labkit.plan.crossing import crossing_context
from labkit.plan.device_presets import DEVICES
from labkit.plan.hardware import LinkSpec
from labkit.plan.layout import Layout
from labkit.plan.link_presets import LINKS
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS, resolve_model
from labkit.plan.serving_presets import vllm_h100
from labkit.plan.steptime import System, decode_step, prefill_step
from labkit.plan.topology import Topology

GPU = DEVICES["rtx-4090"]
EFFICIENCY = vllm_h100().efficiency
INT4 = {"quant_method": "gptq", "bits": 4, "group_size": 32}
LLAMA = resolve_model("llama-3.1-8b")
LLAMA_Q4 = ModelSpec.from_hf({**MODELS["llama-3.1-8b"].config, "quantization_config": INT4})
STAGED = LinkSpec(
    "staged", "PCIe through host memory", 4.5e9, 50e-6, LINKS["pcie4"].source, "assumed"
)
"""Consumer cards without peer access: every message is copied twice and waits for the host."""


def system(link, gpu=GPU):
    return System(gpu, Topology.for_device(gpu, 2, link), efficiency=EFFICIENCY)


def prefill_rates(model, link, chunks=16, gpu=GPU):
    """Tokens per second of a prompt of 16k tokens: over TP 2, and over two halves of the layers."""
    on = system(link, gpu)
    split = prefill_step(model, on, Layout(tp=2), 16384)
    layers = prefill_step(model, on, Layout(pp=2), 16384, microbatches=chunks)
    return split.tokens_per_second, layers.tokens_per_second


@pytest.mark.parametrize("link", [STAGED, LINKS["pcie3"], LINKS["pcie4"]])
def test_prefill_over_tp_loses_to_a_layer_split_on_pcie(link):
    split, layers = prefill_rates(LLAMA, link)
    assert split < layers


def test_through_host_memory_it_is_as_much_slower_as_reported():
    split, layers = prefill_rates(LLAMA, STAGED)
    assert split / layers == pytest.approx(6306 / 12551, abs=0.1)


def test_on_a_wide_link_the_sign_changes():
    split, layers = prefill_rates(LLAMA, LINKS["nvlink4"])
    assert split > layers


def test_decode_gains_from_tp_only_beyond_some_depth():
    depth = crossing_context(LLAMA_Q4, system(STAGED), Layout(), Layout(tp=2))
    assert depth is not None
    assert 16_000 < depth < 65_536
    one, two = (decode_step(LLAMA_Q4, system(STAGED), Layout(tp=tp), 1, 0).seconds for tp in (1, 2))
    assert two > one


def test_the_depth_moves_with_bandwidth_and_latency():
    depths = [
        crossing_context(
            LLAMA_Q4, system(replace(STAGED, bandwidth=bandwidth)), Layout(), Layout(tp=2)
        )
        for bandwidth in (1e9, 4.5e9, 25e9)
    ]
    assert depths == sorted(depths, reverse=True)
    assert depths[0] > 1.1 * depths[-1]
    quick = system(replace(STAGED, hop_latency=5e-6))
    assert crossing_context(LLAMA_Q4, quick, Layout(), Layout(tp=2)) == 0


def test_where_nothing_is_gained_there_is_no_depth():
    slow = system(replace(STAGED, hop_latency=1.0))
    assert crossing_context(LLAMA_Q4, slow, Layout(), Layout(tp=2)) is None
