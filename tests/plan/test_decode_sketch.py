"""Fact T13 over any cost model: three regimes, a law, and where the split stops paying."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.collective_presets import TEXTBOOK_NVLINK, TEXTBOOK_PCIE
from labkit.plan.collectives import Ring
from labkit.plan.decode_sketch import HBM_BANDWIDTH, PEAK_FLOPS
from labkit.plan.tradeoff import SketchRegime, sketch

NVLINK, PCIE = TEXTBOOK_NVLINK.model, TEXTBOOK_PCIE.model


def test_the_terms_are_those_of_the_layers():
    result = sketch(64, 8192, 80, 8, NVLINK)
    assert result.one_gpu_seconds == pytest.approx(12 * 8192**2 * 80 * 2 / HBM_BANDWIDTH)
    assert result.compute_seconds == result.one_gpu_seconds / 8
    assert (result.all_reduces, result.payload_bytes) == (160, 2**20)
    assert result.collective_seconds == pytest.approx(160 * NVLINK.seconds(8, 2**20))
    assert result.step_seconds == result.compute_seconds + result.collective_seconds


def test_a_large_batch_multiplies_longer_than_it_reads():
    result = sketch(1024, 8192, 80, 8, NVLINK)
    assert result.one_gpu_seconds == pytest.approx(2 * 12 * 8192**2 * 80 * 1024 / PEAK_FLOPS)


@pytest.mark.parametrize(
    ("model", "scaling", "regime"),
    [
        (NVLINK, 1.0, SketchRegime.HELPS),
        (PCIE, 1.0, SketchRegime.STILL_WINS),
        (PCIE, 0.1, SketchRegime.HURTS),
    ],
)
def test_every_regime_is_reached(model, scaling, regime):
    assert sketch(1, 8192, 80, 8, model, compute_scaling=scaling).regime is regime


def test_every_regime_has_a_name_and_a_sentence():
    assert len({regime.value for regime in SketchRegime}) == 3
    assert all(regime.sentence.endswith(".") for regime in SketchRegime)


@given(
    batch=st.integers(1, 4096),
    tp=st.integers(2, 64),
    bandwidth=st.floats(1e8, 1e12),
    latency=st.floats(0, 1e-3),
    slower=st.floats(1, 100),
    scaling=st.floats(0, 1),
)
def test_a_slower_link_is_never_faster(batch, tp, bandwidth, latency, slower, scaling):
    fast, slow = (
        sketch(batch, 4096, 32, tp, model, compute_scaling=scaling)
        for model in (Ring(latency, bandwidth), Ring(latency * slower, bandwidth / slower))
    )
    assert slow.step_seconds >= fast.step_seconds
    assert (slow.regime is SketchRegime.HURTS) == (slow.step_seconds >= slow.one_gpu_seconds)


def test_at_the_crossing_an_all_reduce_takes_what_the_split_can_afford():
    result = sketch(1, 8192, 80, 8, PCIE)
    crossing = result.crossing_bytes
    assert PCIE.seconds(8, crossing) == pytest.approx(result.affordable_seconds, rel=1e-3)
    assert result.payload_bytes < crossing
    batch = crossing / (8192 * 2)
    assert sketch(0.99 * batch, 8192, 80, 8, PCIE).regime is SketchRegime.STILL_WINS
    assert sketch(1.01 * batch, 8192, 80, 8, PCIE).regime is SketchRegime.HURTS


def test_a_crossing_that_is_none_is_0_or_infinite():
    assert sketch(1, 1024, 16, 8, Ring(1.0, 1e12)).crossing_bytes == 0
    assert sketch(1, 8192, 80, 8, Ring(0.0, math.inf)).crossing_bytes == math.inf


@pytest.mark.parametrize(
    ("arguments", "more", "words"),
    [
        ((0, 8192, 80, 8), {}, "batch is 0"),
        ((1, 0, 80, 8), {}, "hidden is 0"),
        ((1, 8192, 0, 8), {}, "layers is 0"),
        ((1, 8192, 80, 1), {}, "at least 2 GPUs"),
        ((1, 8192, 80, 8), {"compute_scaling": 2}, "from 0 to 1"),
        ((1, 8192, 80, 8), {"bytes_per_element": 0}, "bytes_per_element is 0"),
    ],
)
def test_impossible_numbers_are_refused_by_name(arguments, more, words):
    with pytest.raises(ValueError, match=words):
        sketch(*arguments, PCIE, **more)
