"""Sampling: the same token on every rank, the same token whoever else is in the batch."""

import numpy as np
import pytest
import torch
from layer_inputs import RANKS, named, real_numbers
from torch.nn import functional as F

from labkit.layers.embedding import ParallelLMHead
from labkit.layers.sampling import MIN_TEMPERATURE, Sampler
from labkit.layers.source import DictSource
from labkit.plan.shard import partition_vocab

VOCAB, HIDDEN = 50, 8
TABLE = real_numbers(VOCAB, HIDDEN, seed=1)
STATES = real_numbers(6, 4, HIDDEN, seed=2)  # six steps of four requests
SETTINGS = {
    "greedy": {},
    "temperature": {"temperature": 1.3},
    "top-k": {"temperature": 1.0, "top_k": 5},
    "top-p": {"temperature": 0.8, "top_p": 0.7},
    "both": {"temperature": 1.0, "top_k": 10, "top_p": 0.9},
}


def chosen(comm, settings, states, requests=None, seed=7):
    """The ids of each step, `[steps, rows]`."""
    head = ParallelLMHead(partition_vocab(VOCAB, comm.size), HIDDEN, comm, dtype=torch.float64)
    head.load(DictSource(named("head", TABLE)), "head")
    sampler = Sampler(**settings, seed=seed)
    return torch.stack([sampler(head(x), head, requests) for x in states])


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_rank_and_every_degree_chooses_the_same_tokens(pool, settings):
    by_degree = [pool(n).run(chosen, settings, STATES) for n in RANKS]
    for per_rank in by_degree:
        for ids in per_rank:
            assert torch.equal(ids, by_degree[0][0])


def test_greedy_is_the_argmax_of_the_whole_logits(pool):
    expected = F.linear(STATES, TABLE).argmax(dim=-1)
    for ids in pool(3).run(chosen, {}, STATES):
        assert torch.equal(ids, expected)


@pytest.mark.parametrize("settings", list(SETTINGS.values())[1:], ids=list(SETTINGS)[1:])
def test_a_request_does_not_depend_on_its_batch_mates(pool, settings):
    together = pool(2).run(chosen, settings, STATES)[0]
    for request in range(4):
        alone = pool(2).run(chosen, settings, STATES[:, request : request + 1], [request])[0]
        assert torch.equal(alone[:, 0], together[:, request])
    backwards = pool(2).run(chosen, settings, STATES.flip(1), [3, 2, 1, 0])[0]
    assert torch.equal(backwards.flip(1), together)


def test_listed_seeds_belong_to_requests():
    logits = real_numbers(3, VOCAB, seed=3)
    counted = Sampler(1.0, seed=7).draw(logits, range(3))
    listed = Sampler(1.0, seed=[9, 8, 7]).draw(logits.flip(0), range(3))
    assert torch.equal(listed.flip(0), counted)


def test_seeds_change_the_draw_and_repeat_it():
    logits = torch.zeros(1, VOCAB)
    draws = {
        seed: [int(sampler.draw(logits, [0])) for _ in range(8)]
        for seed in range(20)
        for sampler in [Sampler(1.0, seed=seed)]
    }
    assert len({tuple(ids) for ids in draws.values()}) == 20
    again = Sampler(1.0, seed=5)
    assert [int(again.draw(logits, [0])) for _ in range(8)] == draws[5]


@pytest.mark.parametrize("settings", list(SETTINGS.values())[1:], ids=list(SETTINGS)[1:])
def test_frequencies_follow_the_distribution(settings):
    """Ten thousand draws: each frequency within five standard deviations of its probability."""
    logits, count = real_numbers(1, 12, seed=4), 10_000
    sampler = Sampler(**settings, seed=1)
    probs, ids = sampler.distribution(logits)
    expected = torch.zeros(12, dtype=torch.float64).scatter(0, ids[0], probs[0].double())
    drawn = sampler.draw(logits.expand(count, -1), range(count))
    observed = torch.bincount(drawn, minlength=12) / count
    deviation = (expected * (1 - expected) / count).sqrt()
    assert ((observed - expected).abs() <= 5 * deviation).all()


def kept(logits: list[float], **settings) -> dict[int, float]:
    probs, ids = Sampler(1.0, **settings).distribution(torch.tensor([logits]).log())
    return {int(i): round(float(p), 6) for i, p in zip(ids[0], probs[0], strict=True) if p > 0}


def test_top_k_keeps_the_most_probable():
    assert kept([0.1, 0.4, 0.2, 0.3], top_k=2) == {1: 0.571429, 3: 0.428571}
    assert len(kept([0.1, 0.4, 0.2, 0.3], top_k=9)) == 4


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [(0.01, {1}), (0.4, {1}), (0.41, {1, 3}), (0.75, {1, 3, 2}), (1.0, {0, 1, 2, 3})],
)
def test_top_p_keeps_the_fewest_that_reach_it(top_p, expected):
    assert set(kept([0.125, 0.4, 0.2, 0.275], top_p=top_p)) == expected


def test_top_p_applies_to_what_top_k_left():
    assert kept([0.1, 0.4, 0.2, 0.3], top_k=2, top_p=0.5) == {1: 1.0}


def test_low_temperature_approaches_the_argmax():
    logits = real_numbers(200, VOCAB, seed=5)
    ids = Sampler(1e-4, seed=1).draw(logits, range(200))
    assert torch.equal(ids, logits.argmax(dim=-1))


def test_impossible_tokens_are_never_drawn():
    logits = torch.full((2000, 6), -torch.inf)
    logits[:, 2:4] = 0.0
    ids = Sampler(2.0, seed=3).draw(logits, range(2000))
    assert set(ids.tolist()) == {2, 3}


def test_an_empty_batch_draws_nothing(pool):
    for settings in SETTINGS.values():
        for ids in pool(2).run(chosen, settings, STATES[:, :0]):
            assert ids.shape == (6, 0)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"temperature": -1.0}, "temperature -1.0 must be 0"),
        ({"temperature": float("nan")}, "temperature nan must be 0"),
        ({"temperature": 1e-45}, "temperature 1e-45 is too close to 0; give 0"),
        ({"temperature": 9e-6}, "at least 1e-05"),
        ({"temperature": float("inf")}, "temperature inf must be 0"),
        ({"temperature": "warm"}, "temperature 'warm' must be a number"),
        ({"top_p": None}, "top_p None must be a number"),
        ({"top_k": 1.5}, "top_k 1.5 must be a whole number"),
        ({"seed": 1.5}, "seed 1.5 must be a whole number"),
        ({"seed": "7"}, "seed '7' must be a whole number"),
        ({"seed": -1}, "seed -1 must be at least 0"),
        ({"seed": 10**23}, f"seed {10**23} must be at most {2**63 - 1}"),
        ({"seed": [1, 2.0]}, "seed 2.0 must be a whole number"),
        ({"top_k": -1}, "top_k -1 must be 0"),
        ({"top_p": 0.0}, "top_p 0.0 must be above 0"),
        ({"top_p": 1.5}, "top_p 1.5 must be above 0"),
    ],
)
def test_settings_outside_their_range_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        Sampler(**settings)


@pytest.mark.parametrize(
    "row", [[0.0, torch.nan], [0.0, torch.inf], [-torch.inf, -torch.inf], [0.0, 3e38]]
)
def test_what_is_no_distribution_is_not_sampled_from(row):
    with pytest.raises(ValueError, match="the logits hold NaN or infinity"):
        Sampler(0.5).draw(torch.tensor([[0.0, 1.0], row]), [0, 1])


def test_the_lowest_temperature_is_the_argmax():
    logits = 100 * real_numbers(200, VOCAB, seed=5)
    for settings in ({}, {"top_p": 0.9}, {"top_k": 7}):
        ids = Sampler(MIN_TEMPERATURE, **settings).draw(logits, range(200))
        assert torch.equal(ids, logits.argmax(dim=-1))


def test_greedy_has_no_distribution():
    with pytest.raises(ValueError, match="temperature 0 is greedy"):
        Sampler().distribution(torch.zeros(1, 4))


def test_seeds_may_be_the_whole_numbers_of_other_libraries():
    logits = torch.zeros(3, VOCAB)
    expected = Sampler(1.0, seed=5).draw(logits, range(3))
    for seed in (np.int64(5), torch.tensor(5), range(5, 8), [np.uint8(5), 6, torch.tensor(7)]):
        assert torch.equal(Sampler(1.0, seed=seed).draw(logits, range(3)), expected)
    assert Sampler(1.0, seed=2**63 - 1).draw(logits, [0, 1, 10**6]).shape == (3,)


def test_a_request_without_a_listed_seed_is_named():
    with pytest.raises(ValueError, match="request 2 has no seed: 2 are listed"):
        Sampler(1.0, seed=[1, 2]).draw(torch.zeros(3, VOCAB), range(3))
    with pytest.raises(ValueError, match="2 seeds are listed for 3 requests"):
        Sampler(1.0, seed=[1, 2]).restarted(3)


def test_streams_go_on_until_they_are_restarted():
    logits = torch.zeros(1, VOCAB)
    sampler = Sampler(1.0, top_k=40, top_p=0.9, seed=5)
    first, second = ([int(sampler.draw(logits, [0])) for _ in range(8)] for _ in range(2))
    assert first != second
    again = sampler.restarted()
    assert [int(again.draw(logits, [0])) for _ in range(16)] == first + second
