"""Fact T13: three regimes of a split step, each reachable, and one law that always holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.tradeoff import Regime, trade_off

MIB = 2**20


def test_a_step_is_compute_over_n_plus_ring_bytes_over_the_link():
    result = trade_off(8e-3, 8, 40 * MIB, 50e9)
    assert result.compute_seconds == pytest.approx(1e-3)
    assert result.collective_seconds == pytest.approx(70 * MIB / 50e9)
    assert result.step_seconds == result.compute_seconds + result.collective_seconds


@pytest.mark.parametrize(
    ("link", "scaling", "regime"),
    [
        (50e9, 1.0, Regime.SLOW_LINK_PAYS),
        (5e9, 1.0, Regime.ONLY_FAST_LINK_PAYS),
        (50e9, 0.0, Regime.NO_LINK_PAYS),
    ],
)
def test_every_regime_is_reached(link, scaling, regime):
    assert trade_off(8e-3, 8, 40 * MIB, link, compute_scaling=scaling).regime is regime


def test_every_regime_has_a_name_and_a_sentence():
    assert len({regime.value for regime in Regime}) == 3
    assert all(regime.sentence.endswith(".") for regime in Regime)


@given(
    compute=st.floats(1e-5, 1.0),
    tp=st.integers(2, 64),
    payload=st.floats(1, 1e10),
    link=st.floats(1e8, 1e12),
    faster=st.floats(1.0, 100.0),
    scaling=st.floats(0, 1),
)
def test_a_slower_link_is_never_faster(compute, tp, payload, link, faster, scaling):
    result = trade_off(
        compute, tp, payload, link, fast_bandwidth=link * faster, compute_scaling=scaling
    )
    assert result.step_seconds >= result.fast_step_seconds
    pays = result.step_seconds < result.one_gpu_seconds
    assert pays == (result.regime is Regime.SLOW_LINK_PAYS)


@pytest.mark.parametrize(
    ("arguments", "more", "words"),
    [
        ((0, 8, 1, 1e9), {}, "compute_seconds is 0"),
        ((1, 1, 1, 1e9), {}, "at least 2 GPUs"),
        ((1, 8, 1, 1e9), {"fast_bandwidth": 1e8}, "give the faster link as fast_bandwidth"),
        ((1, 8, 1, 1e9), {"compute_scaling": 1.5}, "from 0 to 1"),
        ((1, 8, 1, 0), {}, "bandwidth is 0"),
    ],
)
def test_impossible_numbers_are_refused_by_name(arguments, more, words):
    with pytest.raises(ValueError, match=words):
        trade_off(*arguments, **more)
