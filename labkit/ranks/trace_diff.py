"""Where two ranks' traces part: the first collective that one does and the other does not."""

from dataclasses import dataclass

from labkit.ranks.trace_events import Trace, TraceEvent

POINT_TO_POINT = ("send", "recv", "send_recv")


@dataclass(frozen=True)
class Divergence:
    """The first difference. `first` or `second` is None where that trace had already ended."""

    event: int  # counted from 1, among the collectives
    first: TraceEvent | None
    second: TraceEvent | None
    message: str

    def __str__(self) -> str:
        return self.message


def diff_traces(a: Trace, b: Trace) -> Divergence | None:
    """Compare the collectives of two ranks; None when they agree.

    Sends and receives are left out: they differ between ranks by nature. So may the number of rows
    in an all-to-all.
    """
    ours = [event for event in a if event.op not in POINT_TO_POINT]
    theirs = [event for event in b if event.op not in POINT_TO_POINT]
    same = 0
    while same < min(len(ours), len(theirs)) and _key(ours[same]) == _key(theirs[same]):
        same += 1
    if same == len(ours) == len(theirs):
        return None
    left, right = ours[same:], theirs[same:]
    words = [
        f"first difference at event {same + 1}",
        f": rank {a.rank} {_told(left)}; rank {b.rank} {_told(right)}",
    ]
    if _skipped(left, right):
        words.append(f"; rank {b.rank} skipped it")
    elif _skipped(right, left):
        words.append(f"; rank {a.rank} skipped that")
    first, second = (events[0] if events else None for events in (left, right))
    return Divergence(same + 1, first, second, "".join(words))


def _key(event: TraceEvent) -> tuple[object, ...]:
    """What must agree between ranks."""
    shape = event.shape[1:] if event.op == "all_to_all" else event.shape
    return event.op, event.group, shape, event.dtype


def _told(events: list[TraceEvent]) -> str:
    return events[0].describe() if events else "has ended"


def _skipped(left: list[TraceEvent], right: list[TraceEvent]) -> bool:
    """Whether `right` goes on as `left` does after its first event."""
    following, others = [_key(event) for event in left[1:]], [_key(event) for event in right]
    length = min(len(following), len(others))
    return length > 0 and following[:length] == others[:length]
