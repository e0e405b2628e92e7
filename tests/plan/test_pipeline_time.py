"""Pipeline stages: bubbles, busy shares, and no gain for one request (P1, P2, P3, G3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.device_presets import DEVICES
from labkit.plan.layout import Layout
from labkit.plan.model_presets import resolve_model
from labkit.plan.pipeline_time import bubble_fraction, busy_fraction
from labkit.plan.steptime import System, decode_step, prefill_step
from labkit.plan.topology import Topology

LLAMA = resolve_model("llama-3.1-70b")
H100 = DEVICES["h100"]
SYSTEM = System(H100, Topology.for_device(H100, 8))


def test_p1_bubble_of_4_stages():
    assert bubble_fraction(4, 4) == pytest.approx(0.43, abs=0.005)
    assert bubble_fraction(4, 16) == pytest.approx(0.16, abs=0.005)


@given(st.integers(1, 64), st.integers(1, 200))
def test_more_microbatches_never_widen_the_bubble(stages, microbatches):
    assert bubble_fraction(stages, microbatches + 1) <= bubble_fraction(stages, microbatches) < 1
    assert busy_fraction(stages, microbatches) <= min(1, microbatches / stages)


@pytest.mark.parametrize("microbatches", [1, 4, 16])
def test_a_prefill_of_equal_stages_idles_as_p1_says(microbatches):
    step = prefill_step(LLAMA, SYSTEM, Layout(pp=4), 8192, microbatches=microbatches)
    idle = step.terms["pipeline bubble"] / step.seconds
    assert idle == pytest.approx(bubble_fraction(4, microbatches), abs=0.02)


@pytest.mark.parametrize(("microbatches", "busy"), [(1, 1 / 8), (2, 2 / 8), (8, 1.0)])
def test_g3_with_few_microbatches_most_of_a_pipeline_idles(microbatches, busy):
    step = decode_step(LLAMA, SYSTEM, Layout(pp=8), 64, 1000, microbatches=microbatches)
    assert step.utilization <= busy_fraction(8, microbatches) == busy
    assert step.utilization == pytest.approx(busy, rel=0.15)


@pytest.mark.parametrize("pp", [2, 4, 8])
def test_p2_pp_never_lowers_the_latency_of_one_request(pp):
    lone = decode_step(LLAMA, SYSTEM, Layout(), 1, 1000)
    assert decode_step(LLAMA, SYSTEM, Layout(pp=pp), 1, 1000).seconds > lone.seconds


def test_at_low_load_on_nvlink_tp4_is_faster_than_pp4():
    tp, pp = (decode_step(LLAMA, SYSTEM, layout, 2, 500) for layout in (Layout(4), Layout(pp=4)))
    assert tp.seconds < pp.seconds / 2


def test_more_microbatches_than_stages_wait_for_the_slowest_stage():
    four, eight = (
        decode_step(LLAMA, SYSTEM, Layout(pp=4), 64, 1000, microbatches=m) for m in (4, 8)
    )
    assert eight.seconds > 1.8 * four.seconds
    assert eight.seconds == pytest.approx(8 * max(eight.stage_seconds), rel=0.01)


@pytest.mark.parametrize("call", [bubble_fraction, busy_fraction])
def test_no_stage_or_microbatch_is_refused_by_name(call):
    with pytest.raises(ValueError, match="stages is 0"):
        call(0, 1)
    with pytest.raises(ValueError, match="microbatches is 0"):
        call(1, 0)
