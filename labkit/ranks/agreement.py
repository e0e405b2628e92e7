"""Whether ranks that have all returned called the same: pure functions on their flight recorders.

Streams tell exactly whether that was so, after any number of operations; the last records tell, as
far back as they reach, which call it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from labkit.ranks.conflict import Verdict, find_conflict, name_ranks
from labkit.ranks.flight_entry import FlightEntry, Stream, StreamKey, Streams
from labkit.ranks.flight_group import WORD
from labkit.ranks.flight_memory import FROM, NUM_RECORDS, TO, TOGETHER

Part = tuple[int, Stream | None]  # a rank, and its stream: None when it entered nothing there


def all_agree(streams: Sequence[Streams]) -> bool:
    """Whether ranks that have all returned called the same, each in its own part."""
    return _first_difference(streams) is None


def find_disagreement(flights: Sequence[FlightEntry]) -> Verdict | None:
    """What ranks that have all returned did differently, the earliest that is still on record."""
    conflict = find_conflict(flights)
    if conflict is not None:
        return conflict
    different = _first_difference([flight.streams for flight in flights])
    if different is None:
        return None
    way, group, parts = different
    return _uneven(group, parts, flights) if way == TOGETHER else _unmatched(group, way, parts)


def _first_difference(streams: Sequence[Streams]) -> tuple[int, int, list[Part]] | None:
    """Way and group of streams that do not go together, and each side's part; None: all do."""
    for (group, way, _), parts, is_whole in _counterparts(streams):
        balance = sum(stream.balance for _, stream in parts if stream is not None) & WORD
        if len({_said(stream) for _, stream in parts}) > 1 or (is_whole and balance):
            return way, group, parts
    return None


def _said(stream: Stream | None) -> tuple[int, int]:
    return (0, 0) if stream is None else (stream.number, stream.digest)


def _counterparts(
    streams: Sequence[Streams],
) -> Iterator[tuple[StreamKey, list[Part], bool]]:
    """Streams that must be the same: all members' of a group; a sender's and its receiver's.

    With each, whether every side of it is known.
    """
    seen: set[frozenset[tuple[int, StreamKey]]] = set()
    for rank, own in enumerate(streams):
        for (group, way, peer), stream in own.known.items():
            if way == TOGETHER:
                sides = [(member, (group, way, 0)) for member in stream.ranks(len(streams))]
            elif peer < len(streams):
                sides = [(rank, (group, way, peer)), (peer, (group, TO + FROM - way, rank))]
            else:
                continue
            if (same := frozenset(sides)) in seen:
                continue
            seen.add(same)
            parts = [
                (side, streams[side].known.get(key))
                for side, key in sides
                if key in streams[side].known or streams[side].are_all
            ]
            yield (group, way, peer), parts, len(parts) == len(sides)


def _uneven(group: int, parts: Sequence[Part], flights: Sequence[FlightEntry]) -> Verdict:
    """Collectives of a group that no record explains as a conflict."""
    numbers = {rank: _said(stream)[0] for rank, stream in parts}
    most = max(numbers, key=lambda rank: numbers[rank])
    name = next(stream.group for _, stream in parts if stream is not None)
    ranks = tuple(numbers)
    short = [rank for rank in ranks if numbers[rank] < numbers[most]]
    if short:
        record = flights[most].find(group, numbers[most])
        if record is not None:
            verb = "have" if len(short) > 1 else "has"
            reason = (
                f"rank {most} called {record.describe()}, but {name_ranks(short)} {verb} "
                "returned without calling it"
            )
            return Verdict(short[0], ranks, reason)
        told = "; ".join(f"rank {rank} {number}" for rank, number in numbers.items())
        reason = f"the ranks called different numbers of collectives of {name}: {told}"
        return Verdict(short[0], ranks, reason)
    digests = [_said(stream) for _, stream in parts]
    usual = Counter(digests).most_common(1)[0][0]
    odd = [rank for (rank, _), said in zip(parts, digests, strict=True) if said != usual]
    what = "called different things" if odd else "exchanged rows by splits that do not match"
    reason = (
        f"the ranks {what} among the first {numbers[most]} collectives of {name}, before the last "
        f"{NUM_RECORDS} operations of each rank, which is all that is on record"
    )
    return Verdict(odd[0] if odd else most, ranks, reason)


def _unmatched(group: int, way: int, parts: Sequence[Part]) -> Verdict:
    """Messages between two ranks of which no record shows what differs."""
    (one, first), (other, second) = parts
    if way == FROM:
        (one, first), (other, second) = (other, second), (one, first)
    sent, received = _said(first)[0], _said(second)[0]
    name = next(stream.group for stream in (first, second) if stream is not None)
    if sent != received:
        reason = (
            f"rank {one} sent {_messages(sent)} to rank {other} [{name}], "
            f"and rank {other} received {received} before it returned"
        )
    else:
        reason = (
            f"rank {other} received one of the {_messages(sent)} from rank {one} [{name}] as "
            f"another dtype or size than it was sent, before the last {NUM_RECORDS} operations of "
            f"each rank, which is all that is on record"
        )
    return Verdict(other, (one, other), reason)


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"
