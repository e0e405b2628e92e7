"""Case C3: QwQ-32B on 8 A100 (vllm issue 16300): more TP is faster, and each GPU does less."""

import pytest

from labkit.plan.collective_presets import COLLECTIVE_PRESETS
from labkit.plan.device_presets import DEVICES
from labkit.plan.layout import Layout
from labkit.plan.model_presets import resolve_model
from labkit.plan.serving_fit import calibrate_serving
from labkit.plan.serving_presets import vllm_h100
from labkit.plan.serving_rows import ServingRow
from labkit.plan.steptime import System, decode_step
from labkit.plan.topology import Topology

MODEL, A100 = resolve_model("qwq-32b"), DEVICES["a100-80gb"]
SYSTEM = System(
    A100, Topology.for_device(A100, 8), COLLECTIVE_PRESETS["a100_sxm/vllm_graph/0.14.0/all_reduce"]
)
OUTPUT = 200
REPORTED = {
    (2, 1): 5.50,
    (4, 1): 3.91,
    (8, 1): 3.15,
    (2, 16): 6.07,
    (4, 16): 4.77,
    (8, 16): 4.25,
    (2, 128): 11.34,
}
"""Seconds of 200 tokens by TP and batch."""


def row(tp, batch):
    return ServingRow(tp, 1, OUTPUT, batch, tpot=REPORTED[tp, batch] / OUTPUT)


FIT = calibrate_serving([row(*key) for key in REPORTED if key[0] < 8], MODEL, SYSTEM)


def seconds(system, tp, batch):
    return OUTPUT * decode_step(MODEL, system, Layout(tp=tp), batch, OUTPUT / 2).seconds


@pytest.mark.parametrize("batch", [1, 16])
def test_calibrated_on_tp_2_and_4_it_predicts_tp_8(batch):
    predicted = OUTPUT * FIT.predict(row(8, batch)).tpot
    assert predicted == pytest.approx(REPORTED[8, batch], rel=0.10)


@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("efficiency", [FIT.efficiency, vllm_h100().efficiency])
def test_latency_falls_with_tp_and_tokens_for_each_gpu_fall_too(batch, efficiency):
    system = SYSTEM.with_efficiency(efficiency)
    times = [seconds(system, tp, batch) for tp in (2, 4, 8)]
    assert times[2] < times[1] < times[0]
    per_gpu = [1 / (tp * time) for tp, time in zip((2, 4, 8), times, strict=True)]
    assert per_gpu[2] < per_gpu[1] < per_gpu[0]


def test_from_tp_4_to_8_a_lone_request_gains_10_to_40_percent():
    gain = seconds(FIT.system, 4, 1) / seconds(FIT.system, 8, 1)
    assert 1.1 < gain < 1.4
    assert gain == pytest.approx(3.91 / 3.15, abs=0.05)


def test_at_high_load_two_tp4_replicas_bring_more_than_one_tp8():
    four, eight = (
        decode_step(MODEL, FIT.system, Layout(tp=tp), batch, 100).tokens_per_second
        for tp, batch in ((4, 128), (8, 256))
    )
    assert 2 * four > 1.1 * eight
