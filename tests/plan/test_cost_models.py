"""Cost models of collectives: what each counts, and laws that hold for all of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.collectives import (
    AllToAll,
    Hierarchical,
    LaunchBound,
    OneOrTwoShot,
    OneShot,
    RecursiveDoubling,
    Ring,
    RingAllGather,
    RingReduceScatter,
    Tree,
    TwoShot,
    ring_all_reduce_seconds,
)

US, GB = 1e-6, 1e9
SHOTS = OneOrTwoShot(OneShot(4 * US, 250 * GB), TwoShot(9 * US, 300 * GB))
MODELS = [
    Ring(2 * US, 450 * GB, launch=5 * US),
    RingReduceScatter(2 * US, 450 * GB),
    RingAllGather(2 * US, 450 * GB),
    RecursiveDoubling(2 * US, 450 * GB),
    Tree(2 * US, 450 * GB),
    AllToAll(1 * US, 450 * GB, launch=5 * US),
    OneShot(4 * US, 450 * GB),
    TwoShot(6 * US, 450 * GB),
    SHOTS,
    Hierarchical(Ring(2 * US, 450 * GB), Ring(10 * US, 50 * GB), inner_size=1),
    LaunchBound(20 * US, TwoShot(6 * US, 450 * GB)),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
class TestEveryModel:
    def test_one_rank_pays_nothing(self, model):
        assert model.seconds(1, 1e6) == 0
        assert model.wire_bytes(1, 1e6) == 0
        assert (model.steps(1), model.messages(1)) == (0, 0)

    def test_seconds_are_the_sum_of_the_terms(self, model):
        for n in (2, 3, 8):
            terms = model.terms(n, 1e6)
            assert model.seconds(n, 1e6) == terms.latency_seconds + terms.transfer_seconds
            assert min(terms.latency_seconds, terms.transfer_seconds) >= 0

    def test_more_bytes_never_take_less_time(self, model):
        for n in (2, 3, 4, 7, 8):
            times = [model.seconds(n, size) for size in (0, 1, 2**10, 2**16, 2**20, 2**24)]
            assert times == sorted(times)

    def test_no_ranks_and_fewer_than_no_bytes_are_refused(self, model):
        with pytest.raises(ValueError, match="the number of ranks is 0"):
            model.seconds(0, 1)
        with pytest.raises(ValueError, match="payload_bytes is -1"):
            model.wire_bytes(2, -1)
        with pytest.raises(ValueError, match="payload_bytes is nan"):
            model.terms(2, math.nan)


@pytest.mark.parametrize(
    ("model", "n", "steps", "messages", "wire_payloads"),
    [
        (Ring(0, 1), 4, 6, 6, 1.5),
        (RingReduceScatter(0, 1), 4, 3, 3, 0.75),
        (RingAllGather(0, 1), 4, 3, 3, 0.75),
        (RecursiveDoubling(0, 1), 8, 3, 3, 3),
        (RecursiveDoubling(0, 1), 6, 4, 3, 3),
        (RecursiveDoubling(0, 1), 3, 3, 2, 2),
        (Tree(0, 1), 8, 6, 3, 3),
        (Tree(0, 1), 5, 6, 3, 3),
        (AllToAll(0, 1), 4, 3, 3, 0.75),
        (OneShot(0, 1), 4, 1, 3, 3),
        (TwoShot(0, 1), 4, 2, 6, 1.5),
    ],
)
def test_steps_messages_and_bytes_of_the_busiest_rank(model, n, steps, messages, wire_payloads):
    assert (model.steps(n), model.messages(n)) == (steps, messages)
    assert model.wire_bytes(n, 1000) == pytest.approx(1000 * wire_payloads)


def test_a_ring_is_its_two_halves():
    whole, halves = Ring(2 * US, GB), (RingReduceScatter(2 * US, GB), RingAllGather(2 * US, GB))
    for n in (2, 3, 8):
        assert whole.seconds(n, 1e6) == pytest.approx(sum(h.seconds(n, 1e6) for h in halves))
        assert whole.seconds(n, 1e6) == pytest.approx(
            ring_all_reduce_seconds(1e6, n, bandwidth=GB, hop_latency=2 * US)
        )


def test_recursive_doubling_waits_for_the_fold_both_ways():
    model = RecursiveDoubling(1.0, math.inf)
    assert [model.seconds(n, 0) for n in (2, 3, 4, 5, 8)] == [1, 3, 2, 4, 3]
    assert RecursiveDoubling(0.0, 1.0).seconds(3, 10) == 30


def test_a_launch_is_paid_once_whatever_the_ranks():
    with_launch, without = Ring(2 * US, GB, launch=5 * US), Ring(2 * US, GB)
    for n in (2, 8):
        assert with_launch.seconds(n, 1e6) - without.seconds(n, 1e6) == pytest.approx(5 * US)


@given(n=st.integers(2, 64), payload=st.floats(0, 1e9))
def test_one_or_two_shot_is_the_cheaper_of_both(n, payload):
    cheaper = min(SHOTS.one_shot.seconds(n, payload), SHOTS.two_shot.seconds(n, payload))
    assert SHOTS.seconds(n, payload) == cheaper


@pytest.mark.parametrize("n", [2, 4, 8])
def test_both_shots_cost_the_same_at_the_crossing(n):
    shots = OneOrTwoShot(OneShot(4 * US, 100 * GB), TwoShot(9 * US, 300 * GB))
    crossing = shots.crossing_bytes(n)
    assert shots.one_shot.seconds(n, crossing) == pytest.approx(shots.two_shot.seconds(n, crossing))
    assert shots.choice(n, 0.9 * crossing) is shots.one_shot
    assert shots.choice(n, 1.1 * crossing) is shots.two_shot


def test_a_crossing_that_is_none_is_0_or_infinite():
    always_two = OneOrTwoShot(OneShot(9 * US, 100 * GB), TwoShot(4 * US, 300 * GB))
    same_bandwidth = OneOrTwoShot(OneShot(4 * US, GB), TwoShot(9 * US, GB))
    assert always_two.crossing_bytes(4) == 0
    assert same_bandwidth.crossing_bytes(2) == math.inf, "2 ranks send as much either way"
    assert 0 < same_bandwidth.crossing_bytes(4) < math.inf


def test_two_levels_send_the_bytes_of_a_part_over_the_network():
    model = Hierarchical(Ring(2 * US, 450 * GB), Ring(10 * US, 50 * GB), inner_size=8)
    inside, across = model.seconds(8, 1e8), model.seconds(32, 1e8)
    assert inside == Ring(2 * US, 450 * GB).seconds(8, 1e8)
    assert across == pytest.approx(inside + Ring(10 * US, 50 * GB).seconds(4, 1e8 / 8))
    assert across < Ring(10 * US, 50 * GB).seconds(32, 1e8)
    assert (model.groups(4), model.groups(32), model.steps(32)) == (1, 4, 14 + 6)


def test_ranks_that_make_no_whole_groups_are_refused_with_the_nearest_that_do():
    model = Hierarchical(Ring(0, 1), Ring(0, 1), inner_size=8)
    with pytest.raises(ValueError, match=r"12 ranks do not make whole groups of 8.*8, 16"):
        model.seconds(12, 1)


def test_a_host_that_starts_one_by_one_hides_what_is_shorter():
    inner = TwoShot(6 * US, 100 * GB)
    model = LaunchBound(20 * US, inner)
    assert model.seconds(8, 1024) == pytest.approx(20 * US)
    assert model.seconds(8, 2**24) == pytest.approx(inner.seconds(8, 2**24))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Ring(-1, 1), "hop_latency is -1"),
        (lambda: Ring(0, 0), "bandwidth is 0"),
        (lambda: Tree(0, 1, launch=-1), "launch is -1"),
        (lambda: AllToAll(-1, 1), "peer_latency is -1"),
        (lambda: OneShot(math.nan, 1), "latency is nan"),
        (lambda: TwoShot(0, -5), "bandwidth is -5"),
        (lambda: LaunchBound(-1, Ring(0, 1)), "launch is -1"),
        (lambda: Hierarchical(Ring(0, 1), Ring(0, 1), 0), "inner_size is 0"),
    ],
)
def test_impossible_parameters_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()
