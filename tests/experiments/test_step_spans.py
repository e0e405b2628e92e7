"""Spans of a step: they tile each rank's time, and waiting ends when the last rank comes."""

from itertools import pairwise

import pytest

from labkit.experiments.step_spans import Activity, seconds_by_activity, step_spans
from labkit.ranks.trace import Trace, TraceEvent

COMPUTE, WAIT, EXCHANGE = Activity


def event(started: float, seconds: float, op: str = "all_reduce") -> TraceEvent:
    return TraceEvent(op, "world", (1,), "float32", 4, 4, seconds, "a.py:1 f", 1, started)


FAST = Trace(0, [event(100.0, 5.0), event(106.0, 4.0)])
SLOW = Trace(1, [event(104.0, 1.0), event(109.0, 1.0)])


def test_a_rank_waits_until_the_last_has_come_and_exchanges_from_then_on():
    spans = [(s.activity, s.started, s.seconds, s.number) for s in step_spans([FAST, SLOW])]
    assert spans == [
        (WAIT, 0.0, 4.0, 1),
        (EXCHANGE, 4.0, 1.0, 1),
        (COMPUTE, 5.0, 1.0, 2),
        (WAIT, 6.0, 3.0, 2),
        (EXCHANGE, 9.0, 1.0, 2),
        (COMPUTE, 0.0, 4.0, 1),
        (EXCHANGE, 4.0, 1.0, 1),
        (COMPUTE, 5.0, 4.0, 2),
        (EXCHANGE, 9.0, 1.0, 2),
    ]


def test_spans_of_a_rank_tile_its_time():
    for rank in (0, 1):
        spans = [span for span in step_spans([FAST, SLOW]) if span.rank == rank]
        assert all(a.ended == b.started for a, b in pairwise(spans))
        assert sum(seconds_by_activity(spans, rank).values()) == spans[-1].ended == 10.0


def test_one_rank_never_waits():
    assert {span.activity for span in step_spans([FAST])} == {COMPUTE, EXCHANGE}


def test_a_collective_that_ended_before_another_rank_came_was_all_wait():
    """Clocks of two machines, or a rank stopped between the clock and the call."""
    early = Trace(0, [event(0.0, 1.0)])
    late = Trace(1, [event(2.0, 1.0)])
    assert [s.activity for s in step_spans([early, late]) if s.rank == 0] == [WAIT]


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        ([], "traces of all ranks"),
        ([FAST, Trace(1)], "traces of all ranks"),
        ([FAST, Trace(1, SLOW.events[:1])], "first difference at event 2"),
        (
            [FAST, Trace(1, [*SLOW.events, event(111.0, 1.0, "send")])],
            "these ranks also send to each other",
        ),
    ],
)
def test_traces_that_make_no_timeline_are_refused(traces: list[Trace], words: str):
    with pytest.raises(ValueError, match=words):
        step_spans(traces)
