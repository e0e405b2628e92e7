"""Who waits for whom, from the flight records of all ranks: pure functions, no processes.

A rank inside a collective waits for every member of the group that has not entered the same one.
It is stuck when one of those can never come: it has finished, it called something else in its
place, or it is itself stuck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from labkit.ranks.flight import POINT_TO_POINT, FlightEntry, FlightRecord


@dataclass(frozen=True)
class Deadlock:
    """Ranks that wait in vain, the one to blame, and why, in one sentence."""

    culprit: int
    stuck: tuple[int, ...]
    reason: str


def find_deadlock(flights: Sequence[FlightEntry], finished: Collection[int]) -> Deadlock | None:
    """The ranks that cannot go on, judged from one look at all of them.

    A collective whose members are all in it can still be under way, so it is no deadlock; nor is
    waiting for a rank that computes. The caller looks twice, some seconds apart, because a rank
    may just be about to leave.
    """
    conflict = find_conflict(flights)
    waits = {
        rank: missing_ranks(rank, flights)
        for rank in range(len(flights))
        if rank not in finished and flights[rank].state == "in"
    }
    stuck = {rank for rank, missing in waits.items() if missing}
    hopeless = set(finished) | (stuck & set(conflict.stuck) if conflict else set())
    while released := {r for r in stuck - hopeless if not waits[r] & (stuck | hopeless)}:
        stuck -= released
    if not stuck:
        return None
    if conflict and stuck & set(conflict.stuck):
        return Deadlock(conflict.culprit, tuple(sorted(stuck)), conflict.reason)
    for rank in sorted(stuck):
        gone = sorted(waits[rank] & set(finished))
        record = flights[rank].last
        if gone and record is not None:
            waiting = [r for r in sorted(stuck) if gone[0] in waits[r]]
            verb = "wait" if len(waiting) > 1 else "waits"
            reason = (
                f"rank {gone[0]} has returned without {_joining(record)} "
                f"{record.describe()}, in which {name_ranks(waiting)} {verb} for it"
            )
            return Deadlock(gone[0], tuple(sorted(stuck)), reason)
    return Deadlock(min(stuck), tuple(sorted(stuck)), _circle(stuck, flights))


def find_conflict(flights: Sequence[FlightEntry]) -> Deadlock | None:
    """Ranks whose last collective differs from what another rank of the group called in its place.

    Sequence numbers count the collectives of a group, so the same number must be the same call.
    """
    for flight in flights:
        mine = flight.last
        if mine is None or not mine.is_collective:
            continue
        calls = {}
        for rank in _members(mine, flights):
            record = flights[rank].find(mine.group, mine.ranks, mine.seq)
            if record is not None:
                calls[rank] = record
        first = next(iter(calls.values()))
        if all(_agree(first, record) for record in calls.values()):
            continue
        count = Counter(_key(record) for record in calls.values())
        usual = count.most_common(1)[0][0]
        culprit = next(rank for rank, record in calls.items() if _key(record) != usual)
        said = "; ".join(f"rank {rank} {_call_text(record)}" for rank, record in calls.items())
        reason = f"the ranks called different things as number {mine.seq} of {mine.group}: {said}"
        return Deadlock(culprit, tuple(calls), reason)
    return None


def missing_ranks(rank: int, flights: Sequence[FlightEntry]) -> set[int]:
    """The ranks that `rank`, inside its last record, still waits for."""
    mine = flights[rank].last
    if mine is None:
        return set()
    if not mine.is_collective:
        return _missing_peer(rank, mine, flights)
    return missing_members(rank, mine, flights)


def missing_members(rank: int, mine: FlightRecord, flights: Sequence[FlightEntry]) -> set[int]:
    """The members of a collective's group that have not entered it, or called something else."""
    missing = set()
    for other in _members(mine, flights) - {rank}:
        theirs = flights[other].find(mine.group, mine.ranks, mine.seq)
        if theirs is not None:
            if not _agree(mine, theirs):
                missing.add(other)
            continue
        last = flights[other].last_seq(mine.group, mine.ranks)
        if last is not None and last < mine.seq:
            missing.add(other)
    return missing


def _missing_peer(rank: int, mine: FlightRecord, flights: Sequence[FlightEntry]) -> set[int]:
    """The other side of a send or receive, unless it did its part or that is not known.

    The source of a `send_recv` is in no record, so one of those answers any send.
    """
    ours, theirs = flights[rank], flights[mine.peer or 0]
    if mine.peer is None or not (ours.complete_history and theirs.complete_history):
        return set()
    if mine.op == "recv":
        asked = _count(ours, mine, ("recv",), mine.peer)
        answered = _count(theirs, mine, ("send", "send_recv"), rank)
    else:
        asked = _count(ours, mine, ("send", "send_recv"), mine.peer)
        answered = _count(theirs, mine, ("recv",), rank)
        answered += _count(theirs, mine, ("send_recv",), None)
    return {mine.peer} if answered < asked else set()


def _count(flight: FlightEntry, like: FlightRecord, ops: tuple[str, ...], peer: int | None) -> int:
    """How many of these operations with `peer` (None: any) there were in the group of `like`."""
    return sum(
        record.op in ops and record.group == like.group and peer in (None, record.peer)
        for record in flight.history
    )


def _members(record: FlightRecord, flights: Sequence[FlightEntry]) -> set[int]:
    return set(range(len(flights)) if record.ranks is None else record.ranks)


def _key(record: FlightRecord) -> tuple[object, ...]:
    """What must be the same on every rank of the group."""
    shape = () if record.op == "all_to_all" else record.shape
    return (record.op, shape, record.dtype, record.peer)


def _agree(a: FlightRecord, b: FlightRecord) -> bool:
    return _key(a) == _key(b)


def _call_text(record: FlightRecord) -> str:
    return record.describe().rsplit(" [", 1)[0]


def _joining(record: FlightRecord) -> str:
    if record.op in POINT_TO_POINT:
        return "answering"
    return "calling"


def _circle(stuck: Collection[int], flights: Sequence[FlightEntry]) -> str:
    said = []
    for rank in sorted(stuck):
        record = flights[rank].last
        if record is not None:
            said.append(f"rank {rank} in {record.describe()}")
    return f"the ranks wait for each other: {'; '.join(said)}"


def name_ranks(ranks: Sequence[int]) -> str:
    """`rank 1`, `ranks 0 and 2`, `ranks 0, 1 and 3`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
