"""Case C8: starcoder2-3b on two A10G (TensorRT-LLM issue 1875), bloom on 8 V100 (issue 389)."""

import pytest

from labkit.plan.device_presets import DEVICES
from labkit.plan.hardware import LinkSpec
from labkit.plan.layout import Layout
from labkit.plan.link_presets import LINKS
from labkit.plan.model_presets import resolve_model
from labkit.plan.serving_presets import vllm_h100
from labkit.plan.split_diagnosis import SplitCause, diagnose_split
from labkit.plan.steptime import System, decode_step, prefill_step
from labkit.plan.topology import Topology

SMALL, A10G = resolve_model("starcoder2-3b"), DEVICES["a10g"]
EFFICIENCY = vllm_h100().efficiency
STAGED = LinkSpec(
    "staged", "PCIe through host memory", 4.5e9, 40e-6, LINKS["pcie4"].source, "assumed"
)
"""The report turns custom all-reduce off, on cards whose host gives them no peer access."""


def system(link, gpu=A10G, gpus=2):
    return System(gpu, Topology.for_device(gpu, gpus, link), efficiency=EFFICIENCY)


def request_seconds(tp, tokens, link=STAGED):
    on, layout = system(link), Layout(tp=tp)
    prefill = prefill_step(SMALL, on, layout, 1600)
    return prefill.seconds + tokens * decode_step(SMALL, on, layout, 1, 1600 + tokens / 2).seconds


def test_200_tokens_cannot_have_come_in_the_time_reported():
    whole = SMALL.weight_bytes / A10G.memory_bandwidth
    assert 200 * whole > 3 * 0.568


@pytest.mark.parametrize("tokens", [25, 200])
def test_two_gpus_gain_less_than_a_tenth(tokens):
    one, two = (request_seconds(tp, tokens) for tp in (1, 2))
    assert one / two - 1 < 0.10


def test_with_the_tokens_that_fit_the_time_it_is_as_reported():
    assert request_seconds(1, 25) == pytest.approx(0.568, rel=0.1)
    assert request_seconds(2, 25) == pytest.approx(0.549, rel=0.1)


def test_two_replicas_answer_more_requests_than_two_gpus_together():
    def rate(tp, batch):
        on, layout = system(STAGED), Layout(tp=tp)
        prefill = prefill_step(SMALL, on, layout, 1600).seconds
        return batch / (batch * prefill + 200 * decode_step(SMALL, on, layout, batch, 1700).seconds)

    assert 2 * rate(1, 4) > 1.2 * rate(2, 8)


def test_a_12_fold_slowdown_asks_about_host_memory_and_not_about_the_batch():
    model, v100 = resolve_model("llama-2-7b"), DEVICES["v100-32gb"]
    on = system(None, v100, 8)
    alone = decode_step(model, on, Layout(), 1, 500).seconds
    found = diagnose_split(model, on, Layout(tp=8), alone * 115 / 9.28, context=500)
    assert found.cause is SplitCause.HOST_MEMORY
    assert "host memory" in found.cause.value
    assert "batch" not in found.cause.value
    assert found.each > 100 * found.modelled_each
    assert found.slowdown > 12


def test_other_slow_steps_point_elsewhere():
    model, v100 = resolve_model("llama-2-7b"), DEVICES["v100-32gb"]
    on, layout = system(None, v100, 8), Layout(tp=8)
    step = decode_step(model, on, layout, 1, 500).seconds
    assert diagnose_split(model, on, layout, step, context=500).cause is SplitCause.AS_MODELLED
    eager = diagnose_split(model, on, layout, step + 64 * 60e-6, context=500)
    assert eager.cause is SplitCause.LAUNCHES


@pytest.mark.parametrize(
    ("layout", "measured", "named"),
    [(Layout(), 1.0, "TP is 1"), (Layout(tp=2), 0.0, "measured is 0"), (Layout(tp=2), -1, "-1")],
)
def test_what_cannot_be_diagnosed_is_refused(layout, measured, named):
    with pytest.raises(ValueError, match=named):
        diagnose_split(SMALL, system("pcie4"), layout, measured)
