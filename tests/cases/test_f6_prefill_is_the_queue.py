"""Case F6: TTFT under disaggregation is the queue in front of prefill (dynamo issue 107), and
case F7: a bubble does not explain a 13-fold TTFT (sglang issue 34815)."""

import pytest

from labkit.plan.pipeline_time import bubble_fraction
from labkit.plan.prefill_queue import closed_queue_ttft

REPORTED = {1: 0.1, 5: 1.0, 10: 2.0, 50: 6.5, 100: 10.0, 250: 25.0}
"""Seconds to the first token by clients; prompts of 1,000 tokens, one prefill worker."""


def test_one_worker_of_130_ms_is_within_a_factor_of_2_of_all_six_points():
    for clients, seconds in REPORTED.items():
        assert 0.5 <= closed_queue_ttft(clients, 0.13) / seconds <= 2


def test_twice_the_workers_halve_it_and_a_faster_network_does_nothing():
    one, two = (closed_queue_ttft(250, 0.1, workers) for workers in (1, 2))
    assert one == pytest.approx(25.0)
    assert two == pytest.approx(one / 2)
    slow_hop, fast_hop = 0.02, 0.002
    assert closed_queue_ttft(250, 0.1, elsewhere_seconds=slow_hop) == pytest.approx(one, rel=0.01)
    assert closed_queue_ttft(250, 0.1, elsewhere_seconds=fast_hop) == pytest.approx(one, rel=0.01)


@pytest.mark.parametrize("in_flight", range(1, 13))
def test_f7_the_bubble_of_8_stages_is_far_from_a_factor_of_13(in_flight):
    longer = 1 / (1 - bubble_fraction(8, in_flight))
    assert longer <= 8 < 31.1 / 2.33
