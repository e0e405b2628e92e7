"""Times of collectives: the same on every rank, never zero, and what is refused."""

from collections.abc import Callable

import pytest

from labkit.experiments.collective_implementations import (
    IMPLEMENTATIONS,
    OPS,
    SEND_RECV,
    check_implementations,
    check_ops,
)
from labkit.experiments.collective_time import (
    CollectiveTime,
    growth,
    time_all_reduce,
    time_collectives,
)
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_rank_returns_the_slowest_ranks_time(pool: Callable[[int], RankPool], size: int):
    first, *others = pool(size).run(time_all_reduce, [4, 1024], repeats=3)
    assert [(t.ranks, t.payload_bytes) for t in first] == [(size, 4), (size, 1024)]
    assert all(other == first for other in others)
    assert min(t.seconds for t in first) > 0


def test_growth_compares_the_last_time_with_the_first():
    times = [CollectiveTime(2, 4, 0.5), CollectiveTime(2, 8, 9.0), CollectiveTime(2, 400, 2.0)]
    assert (growth(times).bytes, growth(times).seconds) == (100, 4)


@pytest.mark.parametrize("size", [2, 3])
def test_every_implementation_is_timed_at_every_size(pool: Callable[[int], RankPool], size: int):
    first, *others = pool(size).run(time_collectives, [24, 2400], ops=OPS, turns=2)
    assert all(other.rows == first.rows for other in others)
    assert all(len(row.turn_seconds) == 2 and row.fastest > 0 for row in first.rows)
    timed = {(row.implementation, row.op, row.payload_bytes) for row in first.rows}
    ran = {name for name, _, _ in timed}
    assert {"gloo", *SEND_RECV} <= ran
    assert timed == {
        (name, op, payload)
        for name in ran
        for op in SEND_RECV.get(name, OPS)
        for payload in (24, 2400)
    }
    assert ran | dict(first.left_out).keys() == set(IMPLEMENTATIONS)
    assert "nccl" in dict(first.left_out)


def test_a_payload_is_what_the_ranks_share_evenly(pool: Callable[[int], RankPool]):
    options = {"ops": ["all_reduce", "all_gather"], "implementations": ["gloo"], "turns": 1}
    first, *_ = pool(3).run(time_collectives, [1024], **options)
    assert {row.op: row.payload_bytes for row in first.rows} == {
        "all_reduce": 1024,
        "all_gather": 1020,
    }


def test_what_was_named_must_run(pool: Callable[[int], RankPool]):
    with pytest.raises(RankError, match="nccl"):
        pool(2).run(time_collectives, [24], implementations=["nccl"])


def test_one_rank_has_nothing_to_time():
    with pytest.raises(ValueError, match="1 rank sends nothing"):
        time_collectives(Comm.solo(), [24])


@pytest.mark.parametrize(
    ("names", "gpus", "sentence"),
    [
        (["glo"], 0, "no way is called 'glo'; did you mean gloo"),
        ([], 0, "no way is named; there are gloo"),
        (["nccl"], 1, "nccl wants a GPU for each of 2 ranks; here are 1"),
        (["gloo"], 2, "gloo cannot carry the collectives of tensors that live on cuda"),
        (["send/recv-tree"], 0, "send/recv tree has no all_gather; it has all_reduce"),
    ],
)
def test_an_implementation_that_cannot_be_is_refused(names, gpus, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_implementations(names, ["all_gather"], gpus, ranks=2)


def test_names_take_hyphens_and_count_once():
    assert check_ops(["all-reduce", "all_reduce"]) == ("all_reduce",)
    asked = ["shared-memory", "send/recv-one-shot", "shared memory"]
    found = check_implementations(asked, ["all_reduce"], gpus=0, ranks=2)
    assert found == ("shared memory", "send/recv one-shot")
