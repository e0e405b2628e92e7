"""One decode step over time: when each rank computes, waits for another, and exchanges.

All ranks of a machine read the same clock, so their traces lie on one axis. A collective can end
only after the last rank has come: until then a rank waits, from then on all exchange. Between two
collectives it computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from labkit.ranks.trace import Trace, diff_traces


class Activity(StrEnum):
    """What a rank is doing."""

    COMPUTE = "computes"
    WAIT = "waits for another rank"
    EXCHANGE = "exchanges"


@dataclass(frozen=True)
class Span:
    """A stretch of time of one rank, in seconds from the first rank's first collective."""

    rank: int
    activity: Activity
    started: float
    seconds: float
    number: int
    """The collective it belongs to, from 1; for compute, the one that it comes before."""

    @property
    def ended(self) -> float:
        return self.started + self.seconds


def step_spans(traces: Sequence[Trace]) -> tuple[Span, ...]:
    """The spans of each rank, in order of time, from the traces of all ranks.

    What came before the first rank's first collective is in no trace, and in no span.

    Raises ValueError without an event, or if the ranks did not make the same calls.
    """
    if not traces or not all(traces):
        raise ValueError("a timeline needs the traces of all ranks, with at least one event each")
    for trace in traces[1:]:
        if difference := diff_traces(traces[0], trace):
            raise ValueError(f"these ranks did not make the same calls: {difference}")
        if len(trace) != len(traces[0]):
            raise ValueError("a timeline shows collectives; these ranks also send to each other")
    start = min(trace[0].started for trace in traces)
    everyone_came = [max(event.started for event in events) for events in zip(*traces, strict=True)]
    return tuple(span for trace in traces for span in _spans_of(trace, start, everyone_came))


def _spans_of(trace: Trace, start: float, everyone_came: Sequence[float]) -> list[Span]:
    spans: list[Span] = []
    free = start

    def add(activity: Activity, begin: float, end: float, number: int) -> None:
        if end > begin:
            spans.append(Span(trace.rank, activity, begin - start, end - begin, number))

    for number, (event, came) in enumerate(zip(trace, everyone_came, strict=True), start=1):
        ended = event.started + event.seconds
        met = min(came, ended)
        add(Activity.COMPUTE, free, event.started, number)
        add(Activity.WAIT, event.started, met, number)
        add(Activity.EXCHANGE, met, ended, number)
        free = ended
    return spans


def seconds_by_activity(spans: Sequence[Span], rank: int) -> dict[Activity, float]:
    """What a rank's time adds up to."""
    return {
        activity: sum(s.seconds for s in spans if s.rank == rank and s.activity is activity)
        for activity in Activity
    }
