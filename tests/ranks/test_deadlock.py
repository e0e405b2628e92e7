"""Who waits for whom: judged from flight records alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labkit.ranks.deadlock import find_conflict, find_deadlock
from labkit.ranks.flight import FLIGHT_BYTES, FlightEntry, FlightRecorder, read_flight

Writes = Callable[[FlightRecorder], object]


def flight(*ops: tuple, inside: bool = True) -> FlightEntry:
    """A rank that ran `ops` (arguments of `enter`); `inside`: still in the last one."""
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    for n, op in enumerate(ops):
        recorder.enter(*op)
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
    assert (found.culprit, found.stuck) == (1, (0, 2))
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
    assert found.stuck == (0, 1)
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
    assert found.stuck == (0, 1)


def test_send_that_meets_its_receive_may_finish() -> None:
    assert find_deadlock([flight(send(1)), flight(recv(0))], finished=()) is None


def test_receive_of_what_was_sent_before_its_sender_returned() -> None:
    assert find_deadlock([flight(send(1), inside=False), flight(recv(0))], finished={0}) is None


def test_ring_exchange_that_one_rank_left_early() -> None:
    ring = [("world", "send_recv", (4,), "float32", (rank + 1) % 3) for rank in range(3)]
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
    assert (found.culprit, found.stuck) == (0, (1,))
