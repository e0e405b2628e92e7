"""Ring all-reduce: bytes and seconds, and that the model counts what `TracedComm` counts."""

import pytest
import torch

from labkit.plan.collectives import (
    ring_all_reduce_seconds,
    ring_latency_seconds,
    ring_wire_bytes,
)
from labkit.ranks.trace import ring_bytes


@pytest.mark.parametrize(("n", "factor"), [(1, 0), (2, 1), (3, 4 / 3), (4, 1.5), (8, 1.75)])
def test_a_rank_sends_two_times_n_minus_1_over_n_of_the_payload(n, factor):
    assert ring_wire_bytes(1200, n) == pytest.approx(1200 * factor)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_wire_bytes_are_those_that_a_trace_reports(n):
    x = torch.zeros(1, 1, 576)
    assert ring_wire_bytes(x.nbytes, n) == pytest.approx(ring_bytes("all_reduce", x, n), abs=1)


def test_seconds_are_the_hops_plus_the_bytes():
    seconds = ring_all_reduce_seconds(1e6, 4, bandwidth=1e9, hop_latency=2e-6)
    assert seconds == pytest.approx(2 * 3 * 2e-6 + 1.5e6 / 1e9)


def test_one_rank_costs_nothing():
    assert ring_all_reduce_seconds(1e6, 1, bandwidth=1e9, hop_latency=2e-6) == 0


def test_t9_the_latency_of_a_decode_all_reduce_outweighs_its_bytes():
    """72B on 8 GPUs, 450 GB/s and 2 us a hop (FACTS T2): 1 MiB at batch 64."""
    whole = ring_all_reduce_seconds(2**20, 8, bandwidth=450e9, hop_latency=2e-6)
    latency = ring_latency_seconds(8, hop_latency=2e-6)
    assert latency == pytest.approx(28e-6)
    assert whole - latency == pytest.approx(4.08e-6, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ring_wire_bytes(1, 0), "the number of ranks is 0"),
        (lambda: ring_wire_bytes(-1, 2), "payload_bytes is -1"),
        (lambda: ring_all_reduce_seconds(1, 2, bandwidth=0), "bandwidth is 0"),
        (lambda: ring_all_reduce_seconds(1, 2, bandwidth=1, hop_latency=-1), "hop_latency is -1"),
    ],
)
def test_impossible_numbers_are_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()
