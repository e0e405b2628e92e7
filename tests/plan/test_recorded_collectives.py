"""What the recorded points say of the textbook, of launches, and of bus bandwidth."""

import pytest

from labkit.plan.recorded_collectives import (
    GRAPH,
    SOURCE,
    bus_bandwidths,
    compare,
    launch_costs,
    recorded,
    recorded_names,
)

KIB, MIB, GIB = 2**10, 2**20, 2**30
NCCL = "h100_sxm/nccl/2.27.3/all_reduce"
TRTLLM = "h100_sxm/trtllm/1.3.0rc20/all_reduce"


def us(name, payload_bytes):
    return [1e6 * p.seconds for p in recorded(name) if p.payload_bytes == payload_bytes]


def test_the_excerpt_is_small_and_has_a_source():
    assert sum(len(recorded(name)) for name in recorded_names()) <= 200
    assert "aiconfigurator-core 0.12.0" in str(SOURCE)


def test_small_all_reduces_on_2_4_8_gpus_are_those_of_the_data():
    """As ../shared/data/README.md quotes them: microseconds at 1 KiB."""
    assert us(TRTLLM, KIB) == pytest.approx([2.7, 2.9, 3.2], abs=0.05)
    assert us(GRAPH, KIB) == pytest.approx([4.2, 4.5, 4.5], abs=0.05)
    assert us(NCCL, KIB) == pytest.approx([6.4, 9.4, 15.7], abs=0.05)


def test_a_launch_costs_more_than_the_collective():
    costs = launch_costs(KIB)
    assert [cost.ranks for cost in costs] == [2, 4, 8]
    assert 1e6 * costs[0].eager_seconds == pytest.approx(21.2, abs=0.05)
    assert 1e6 * costs[0].graph_seconds == pytest.approx(4.2, abs=0.05)
    for cost in costs:
        assert cost.launch_seconds > 3 * cost.graph_seconds


def test_the_textbook_latency_grows_with_the_gpus_and_the_recorded_one_does_not():
    two, four, eight = compare(sizes=[KIB])
    assert [round(1e6 * c.textbook_seconds) for c in (two, four, eight)] == [4, 12, 28]
    assert eight.recorded_seconds < 1.1 * two.recorded_seconds
    assert abs(two.textbook_error) < 0.1
    assert eight.textbook_error == pytest.approx(5.2, abs=0.1)
    assert abs(eight.fitted_error) < 0.05


def test_over_what_decode_sends_the_fit_is_nearer_than_the_textbook():
    rows = [c for c in compare() if c.payload_bytes <= 16 * MIB]
    fitted, textbook = (
        sum(abs(error) for error in errors) / len(rows)
        for errors in ([c.fitted_error for c in rows], [c.textbook_error for c in rows])
    )
    assert fitted <= 0.06
    assert textbook > 1


def test_450_gb_per_second_is_reached_only_far_above_inference_sizes():
    at = {b.payload_bytes: b.bytes_per_second / 1e9 for b in bus_bandwidths(ranks=8)}
    assert at[64 * MIB] == pytest.approx(365, rel=0.01)
    assert at[256 * MIB] == pytest.approx(430, rel=0.01)
    assert at[GIB] == pytest.approx(470, rel=0.01)
    assert min(size for size, speed in at.items() if speed >= 450) == GIB
    by_ranks = [b for b in bus_bandwidths() if b.payload_bytes == 64 * MIB]
    assert [b.bytes_per_second / 1e9 for b in by_ranks] == pytest.approx([264, 310, 365], rel=0.04)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: recorded("h100"), "no series 'h100'; it has "),
        (lambda: recorded(GRAPH, 3), r"recorded with \[2, 4, 8\] ranks, not with 3"),
        (lambda: compare(sizes=[3]), r"at none of the sizes \[3\]"),
        (lambda: launch_costs(3), "no all-reduce of 3 B was recorded both ways"),
    ],
)
def test_what_the_excerpt_lacks_is_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()
