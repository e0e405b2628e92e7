"""Who waits for whom: judged from flight records alone."""

from __future__ import annotations

import pytest

from labkit.ranks.agreement import find_disagreement
from labkit.ranks.conflict import find_conflict
from labkit.ranks.deadlock import find_deadlock
from labkit.ranks.flight import FlightRecorder
from labkit.ranks.flight_entry import FlightEntry, read_flight
from labkit.ranks.flight_group import FlightGroup, Splits
from labkit.ranks.flight_memory import FLIGHT_BYTES, NUM_RECORDS

DEFAULTS: tuple = ("", "", (), "", None, None, {})


def flight(*ops: tuple, inside: bool = True) -> FlightEntry:
    """A rank that ran `ops`; `inside`: still in the last one.

    An op is name of the group, op, shape, dtype, peer, ranks of the group, more of `enter`.
    """
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    groups: dict[tuple, FlightGroup] = {}
    for n, op in enumerate(ops):
        name, what, shape, dtype, peer, ranks, more = (*op, *DEFAULTS[len(op) :])
        if (name, ranks) not in groups:
            groups[name, ranks] = recorder.group(name, ranks)
        recorder.enter(groups[name, ranks], what, shape, dtype, peer=peer, **more)
        if not (inside and n == len(ops) - 1):
            recorder.leave()
    return read_flight(memory)


REDUCE = ("world", "all_reduce", (4,), "float32")
REDUCE_8 = ("world", "all_reduce", (8,), "float32")
REDUCE_BF16 = ("world", "all_reduce", (4,), "bfloat16")
BARRIER = ("world", "barrier")


def test_ranks_that_are_all_in_the_same_collective_may_finish() -> None:
    assert find_deadlock([flight(REDUCE), flight(REDUCE)], finished=()) is None


def test_waiting_for_a_rank_that_computes_is_no_deadlock() -> None:
    assert find_deadlock([flight(REDUCE), flight()], finished=()) is None


def test_waiting_for_a_rank_that_returned_is_one() -> None:
    found = find_deadlock([flight(REDUCE), flight(), flight(REDUCE)], finished={1})
    assert found is not None
    assert (found.culprit, found.ranks) == (1, (0, 2))
    assert found.reason == (
        "rank 1 has returned without calling all_reduce float32 (4,) [world #1], "
        "in which ranks 0 and 2 wait for it"
    )


def test_rank_that_did_its_part_and_returned_is_not_to_blame() -> None:
    ahead = flight(REDUCE, BARRIER, inside=False)
    assert find_deadlock([flight(REDUCE), ahead], finished={1}) is None


@pytest.mark.parametrize("other", [REDUCE_8, REDUCE_BF16, BARRIER])
def test_different_calls_with_the_same_number_conflict(other: tuple) -> None:
    flights = [flight(BARRIER, REDUCE), flight(BARRIER, other), flight(BARRIER, REDUCE)]
    found = find_deadlock(flights, finished=())
    assert found is not None
    assert found == find_conflict(flights)
    assert found.culprit == 1
    assert "number 2 of world: rank 0 all_reduce float32 (4,); rank 1 " in found.reason


def test_conflict_is_found_when_the_other_rank_went_on() -> None:
    gone = flight(("world", "broadcast", (4,), "float32"), inside=False)
    found = find_deadlock([gone, flight(REDUCE), flight(REDUCE)], finished={0})
    assert found is not None
    assert found.culprit == 0


def test_all_to_all_may_have_different_shapes() -> None:
    a, b = (("world", "all_to_all", (n, 8), "float32") for n in (3, 5))
    assert find_conflict([flight(a), flight(b)]) is None


def test_groups_of_the_same_name_are_told_apart_by_their_ranks() -> None:
    one = ("tp", "all_reduce", (4,), "float32", None, (0, 1))
    other = ("tp", "all_reduce", (8,), "float32", None, (2, 3))
    assert find_deadlock([flight(one), flight(one), flight(other), flight(other)], ()) is None


def test_two_groups_entered_in_opposite_order() -> None:
    a = ("a", "barrier", (), "", None, (0, 1))
    b = ("b", "barrier", (), "", None, (0, 1))
    found = find_deadlock([flight(a), flight(b)], finished=())
    assert found is not None
    assert found.ranks == (0, 1)
    assert "wait for each other: rank 0 in barrier [a [0, 1] #1]; rank 1 in" in found.reason


def test_chain_that_ends_at_a_computing_rank_may_resolve() -> None:
    a = ("a", "barrier", (), "", None, (0, 1))
    b = ("b", "barrier", (), "", None, (1, 2))
    assert find_deadlock([flight(a), flight(b), flight()], finished=()) is None
    assert find_deadlock([flight(a), flight(b), flight()], finished={2}) is not None


def send(to: int) -> tuple:
    return ("world", "send", (4,), "float32", to)


def recv(source: int) -> tuple:
    return ("world", "recv", (4,), "float32", source)


def test_ring_of_receives_waits_for_ever() -> None:
    found = find_deadlock([flight(recv(1)), flight(recv(0))], finished=())
    assert found is not None
    assert found.ranks == (0, 1)


def test_send_that_meets_its_receive_may_finish() -> None:
    assert find_deadlock([flight(send(1)), flight(recv(0))], finished=()) is None


def test_receive_of_what_was_sent_before_its_sender_returned() -> None:
    assert find_deadlock([flight(send(1), inside=False), flight(recv(0))], finished={0}) is None


def ring_step(rank: int) -> tuple:
    came = {"source": (rank - 1) % 3, "incoming": ((4,), "float32")}
    return ("world", "send_recv", (4,), "float32", (rank + 1) % 3, None, came)


def test_ring_exchange_that_one_rank_left_early() -> None:
    ring = [ring_step(rank) for rank in range(3)]
    assert find_deadlock([flight(step) for step in ring], finished=()) is None
    found = find_deadlock([flight(ring[0]), flight(), flight(ring[2])], finished={1})
    assert found is not None
    assert found.culprit == 1
    assert "without answering send_recv float32 (4,) to rank 1" in found.reason


def test_many_messages_before_are_no_reason_to_accuse() -> None:
    sender = flight(*[send(1)] * 50, inside=False)
    assert find_deadlock([sender, flight(*[recv(0)] * 50)], finished={0}) is None


def test_receive_of_one_more_than_was_sent() -> None:
    sender = flight(send(1), inside=False)
    found = find_deadlock([sender, flight(recv(0), recv(0))], finished={0})
    assert found is not None
    assert (found.culprit, found.ranks) == (0, (1,))


@pytest.mark.parametrize("n", [10, 40, 500])
def test_receive_of_one_more_than_was_sent_after_many(n: int) -> None:
    sender = flight(*[send(1)] * n, inside=False)
    found = find_deadlock([sender, flight(*[recv(0)] * (n + 1))], finished={0})
    assert found is not None
    assert (found.culprit, found.ranks) == (0, (1,))


def test_message_that_a_ring_exchange_did_not_send_is_missed() -> None:
    """What rank 1 sends in a ring goes to rank 2, so it answers no receive of rank 0."""
    found = find_deadlock([flight(recv(1)), flight(ring_step(1), inside=False)], finished={1})
    assert found is not None
    assert found.culprit == 1


def test_group_that_was_used_long_ago_is_still_counted() -> None:
    pair = ("pair", "all_reduce", (4,), "float32", None, (0, 1))
    busy = [REDUCE] * 3 * NUM_RECORDS
    found = find_deadlock([flight(pair, *busy, pair), flight(pair, *busy, inside=False)], {1})
    assert found is not None
    assert found.culprit == 1
    assert "without calling all_reduce float32 (4,) [pair [0, 1] #2]" in found.reason


def test_members_of_a_group_with_a_long_name_are_known() -> None:
    long = ("g" * 900, "barrier", (), "", None, (0, 1))
    others = flight(inside=False)
    assert find_deadlock([flight(long), flight(long), others], finished={2}) is None
    found = find_deadlock([flight(long), flight(inside=False), others], finished={1, 2})
    assert found is not None
    assert (found.culprit, found.ranks) == (1, (0,))


def test_nobody_is_judged_by_a_group_whose_members_are_not_known() -> None:
    huge = ("huge", "barrier", (), "", None, tuple(range(200)))
    assert find_deadlock([flight(huge), flight(inside=False)], finished={1}) is None
    assert find_disagreement([flight(huge, inside=False), flight(inside=False)]) is None


def test_nobody_is_judged_by_streams_that_found_no_room() -> None:
    groups = [(f"g{n}", "barrier", (), "", None, (0, 1)) for n in range(1100)]
    full = flight(*groups, inside=False)
    assert find_deadlock([flight(groups[-1]), full], finished={1}) is None
    assert find_disagreement([flight(*groups[:1000], groups[-1], inside=False), full]) is not None
    assert find_disagreement([full, flight(*groups, inside=False)]) is None


def many(*ops: tuple) -> FlightEntry:
    """A rank that ran `ops` and then more than the ring of records holds, and returned."""
    return flight(*ops, *[BARRIER] * 2 * NUM_RECORDS, inside=False)


def reduce_of(**more: object) -> tuple:
    return (*REDUCE, None, None, more)


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        (REDUCE_8, "sizes"),
        (REDUCE_BF16, "dtypes"),
        (reduce_of(detail="max"), "reductions"),
        (("world", "all_gather", (4,), "float32"), None),
    ],
)
def test_returned_ranks_that_called_different_things(odd: tuple, kind: str | None) -> None:
    found = find_disagreement([flight(op, inside=False) for op in (REDUCE, odd, REDUCE)])
    assert found is not None
    assert found.culprit == 1
    assert "as number 1 of world: rank 0 all_reduce float32 (4,); rank 1 " in found.reason
    assert (kind is None) == ("mismatch" not in found.reason)
    assert kind is None or found.reason.endswith(f"(a mismatch of {kind})")
    forgotten = find_disagreement([many(REDUCE), many(odd), many(REDUCE)])
    assert forgotten is not None
    assert forgotten.culprit == 1
    assert "among the first 65 collectives of world" in forgotten.reason


def test_returned_ranks_that_called_the_same_in_another_order_do_not_agree() -> None:
    assert find_disagreement([many(REDUCE, REDUCE_8), many(REDUCE_8, REDUCE)]) is not None
    assert find_disagreement([many(REDUCE, REDUCE_8), many(REDUCE, REDUCE_8)]) is None


def test_returned_rank_that_skipped_one_long_ago() -> None:
    pair = ("pair", "all_reduce", (4,), "float32", None, (0, 1))
    found = find_disagreement([many(pair), many()])
    assert found is not None
    assert found.culprit == 1
    assert found.reason.endswith("numbers of collectives of pair: rank 0 1; rank 1 0")


@pytest.mark.parametrize(
    ("received", "kind"),
    [
        (("world", "recv", (4,), "int32", 0), "dtypes"),
        (("world", "recv", (8,), "float32", 0), "sizes"),
        (("world", "recv", (2,), "int32", 0), "dtypes and sizes"),
        (("world", "recv", (2, 2), "float32", 0), None),
    ],
)
def test_message_received_as_something_else(received: tuple, kind: str | None) -> None:
    found = find_disagreement([flight(send(1), inside=False), flight(received, inside=False)])
    forgotten = find_disagreement([many(send(1)), many(received)])
    if kind is None:
        assert found is forgotten is None
        return
    assert found is not None
    assert found.culprit == 1
    assert found.reason.startswith(f"a mismatch of {kind} in message 1 from rank 0 to rank 1")
    assert forgotten is not None
    assert "received one of the 1 message from rank 0" in forgotten.reason


def test_message_that_nobody_received() -> None:
    found = find_disagreement([flight(send(1), inside=False), flight(inside=False)])
    assert found is not None
    assert "rank 0 sent 1 message to rank 1 [world], and rank 1 received 0" in found.reason


def exchange(rank: int, sent: tuple[int, ...], came: tuple[int, ...]) -> tuple:
    splits = {"splits": Splits(rank, sent, came)}
    return ("world", "all_to_all", (sum(sent), 8), "float32", None, None, splits)


def test_splits_of_an_exchange_must_match() -> None:
    good = [exchange(0, (1, 3), (1, 2)), exchange(1, (2, 2), (3, 2))]
    bad = [exchange(0, (1, 1), (1, 2)), exchange(1, (2, 2), (3, 2))]
    worse = [exchange(0, (1, 3), (1, 2)), exchange(1, (2, 2), (1, 2))]  # off the other way round
    assert find_disagreement([flight(op, inside=False) for op in good]) is None
    assert find_disagreement([many(op) for op in good]) is None
    found = find_disagreement([flight(op, inside=False) for op in bad])
    assert found is not None
    assert "rank 0 sends rank 1 1 rows (input_splits), and rank 1 expects 3" in found.reason
    forgotten = find_disagreement([many(one, two) for one, two in zip(bad, worse, strict=True)])
    assert forgotten is not None
    assert "exchanged rows by splits that do not match" in forgotten.reason


def test_second_group_of_the_same_name_is_another_one() -> None:
    recorders = [FlightRecorder(bytearray(FLIGHT_BYTES)) for _ in range(2)]
    pairs = [[recorder.group("tp", (0, 1)) for _ in range(2)] for recorder in recorders]
    assert [group.label for group in pairs[0]] == ["tp", "tp (2)"]
    recorders[0].enter(pairs[0][0], "barrier")
    recorders[1].enter(pairs[1][1], "barrier")
    found = find_deadlock([read_flight(recorder._bytes) for recorder in recorders], finished=())
    assert found is not None
    assert found.reason == (
        "the ranks wait for each other: rank 0 in barrier [tp [0, 1] #1]; "
        "rank 1 in barrier [tp (2) [0, 1] #1]"
    )
    recorders[0].new_call()
    assert recorders[0].group("tp", (0, 1)).key not in {group.key for group in pairs[0]}
