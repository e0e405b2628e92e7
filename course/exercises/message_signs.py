"""Signs of a mistake in what ranks sent each other: exercises that do without collectives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch import Tensor

from course.grading.comparison import difference
from course.grading.exercise import Mistake, Outcome
from course.grading.plain_data import plain
from course.grading.rank_call import StudentError
from labkit.ranks.conflict import find_conflict
from labkit.ranks.flight_entry import POINT_TO_POINT, FlightRecord
from labkit.ranks.trace_events import Trace


def forbidden_collective() -> Mistake:
    """Something other than send, recv and send_recv was called."""
    return Mistake(
        "forbidden-collective",
        "A collective did the work. Only send, recv and send_recv may be used here, "
        "because those are what a collective is made of.",
        shows=_used_a_collective,
    )


def went_round_the_comm(expected: Callable[[int], Tensor], own: Callable[[int], int]) -> Mistake:
    """A rank has what only others could bring, and no message of its `comm`.

    own(rank): how many numbers of its result a rank can have without the others.
    """

    def shows(outcome: Outcome) -> bool:
        return any(
            not trace
            and expected(rank).numel() > own(rank)
            and difference(plain(expected(rank)), outcome.returned[rank], 0.0) is None
            for rank, trace in enumerate(outcome.traces)
        )

    return Mistake(
        "went-round-the-comm",
        "The result is right, and a rank has it without any send or receive of `comm`. Use the "
        "messages of `comm` and nothing else.",
        shows=shows,
    )


def circular_wait() -> Mistake:
    """Every rank stands in a send or a receive of its own call."""
    return Mistake(
        "circular-wait",
        "Every rank waits inside a message, and none is free to serve the other side of it. "
        "A send returns only once its receiver takes the tensor, so ranks that all send first "
        "(or all receive first) wait for ever.",
        shows=lambda outcome: _last_messages(outcome) is not None,
    )


def wrong_neighbour() -> Mistake:
    """Every rank waits in a send_recv, for a message from a rank that sends to another one."""

    def shows(outcome: Outcome) -> bool:
        last = _last_messages(outcome)
        return last is not None and all(
            mine.source is not None and last[mine.source].peer != rank
            for rank, mine in enumerate(last)
        )

    return Mistake(
        "wrong-neighbour",
        "Every rank waits for a message from a rank that sends to another one. Where all send to "
        "one side, what arrives comes from the other side.",
        shows=shows,
    )


def misfit(outcome: Outcome) -> int | None:
    """Which message of one rank to another had another size than the room made for it.

    1: the first of these two ranks. None: the call did not fail because of that.
    """
    if outcome.error is None:
        return None
    found = find_conflict([report.flight for report in outcome.error.reports])
    told = found and re.search(r"mismatch of .*sizes in message (\d+) ", found.reason)
    return int(told[1]) if told else None


def sizes_clash(outcome: Outcome) -> bool:
    """The call failed because sizes did not fit, in a message or on a rank."""
    return misfit(outcome) is not None or added_unequal(outcome) or copied_unequal(outcome)


def added_unequal(outcome: Outcome) -> bool:
    """A rank raised because tensors of different sizes met in an addition."""
    return _raised_sizes(outcome, "The size of tensor a ")


def copied_unequal(outcome: Outcome) -> bool:
    """A rank raised because a tensor was written into one of another size."""
    return _raised_sizes(outcome, "The expanded size of the tensor ")


def _raised_sizes(outcome: Outcome, start: str) -> bool:
    return any(e.type_name == "RuntimeError" and e.text.startswith(start) for e in raised(outcome))


def raised(outcome: Outcome) -> list[StudentError]:
    """What the function raised, on each rank that raised something of its own."""
    if outcome.error is None:
        return []
    found = [report.exception for report in outcome.error.reports]
    return [error for error in found if isinstance(error, StudentError)]


def messages_of(outcome: Outcome) -> list[list[FlightRecord]]:
    """Of a call that failed: the messages each rank was in, oldest first, the last of them."""
    if outcome.error is None:
        return []
    return [
        [record for record in report.flight.history if not record.is_collective]
        for report in outcome.error.reports
    ]


def room(record: FlightRecord) -> tuple[int, ...] | None:
    """The shape that a message may have which arrives in this record; None: none arrives."""
    if record.op == "send_recv":
        return None if record.incoming is None else record.incoming[0]
    return record.shape if record.op == "recv" else None


def numbers_sent(trace: Trace, itemsize: int) -> int:
    """How many numbers a rank sent, in messages to others."""
    return sum(event.wire_bytes for event in trace if event.op in POINT_TO_POINT) // itemsize


def messages_sent(trace: Trace) -> int:
    """How many messages a rank sent."""
    return sum(event.op in ("send", "send_recv") for event in trace)


def is_right(outcome: Outcome, expected: Callable[[int], Any], tolerance: float = 0.0) -> bool:
    """Whether every rank returned what it should."""
    return bool(outcome.returned) and not any(
        difference(plain(expected(rank)), value, tolerance)
        for rank, value in enumerate(outcome.returned)
    )


def _used_a_collective(outcome: Outcome) -> bool:
    return any(event.op not in POINT_TO_POINT for trace in outcome.traces for event in trace)


def _last_messages(outcome: Outcome) -> list[FlightRecord] | None:
    """What each rank waits in; None unless every rank stands in a message."""
    if outcome.error is None or not outcome.error.reports:
        return None
    found = [
        report.flight.last
        for report in outcome.error.reports
        if report.state == "waiting"
        and report.flight.last is not None
        and report.flight.last.op in POINT_TO_POINT
    ]
    return found if len(found) == len(outcome.error.reports) else None
