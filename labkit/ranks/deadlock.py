"""Who waits for whom, from the flight records of all ranks: pure functions, no processes.

A rank inside a collective waits for every member of the group that has not entered the same one.
It is stuck when one of those can never come: it has finished, it called something else in its
place, or it is itself stuck.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from labkit.ranks.conflict import Verdict, agree, find_conflict, name_ranks
from labkit.ranks.flight_entry import POINT_TO_POINT, FlightEntry, FlightRecord
from labkit.ranks.flight_memory import FROM, TO


def find_deadlock(flights: Sequence[FlightEntry], finished: Collection[int]) -> Verdict | None:
    """The ranks that cannot go on, judged from one look at all of them.

    A collective whose members are all in it can still be under way, so it is no deadlock; nor is
    waiting for a rank that computes. The caller looks twice, some seconds apart, because a rank
    may just be about to leave.
    """
    waits = {
        rank: missing_ranks(rank, flights)
        for rank in range(len(flights))
        if rank not in finished and flights[rank].state == "in"
    }
    stuck = {rank for rank, missing in waits.items() if missing}
    if not stuck:
        return None
    conflict = find_conflict(flights)
    hopeless = set(finished) | (stuck & set(conflict.ranks) if conflict else set())
    while released := {r for r in stuck - hopeless if not waits[r] & (stuck | hopeless)}:
        stuck -= released
    if not stuck:
        return None
    if conflict and stuck & set(conflict.ranks):
        return Verdict(conflict.culprit, tuple(sorted(stuck)), conflict.reason)
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
            return Verdict(gone[0], tuple(sorted(stuck)), reason)
    return Verdict(min(stuck), tuple(sorted(stuck)), _circle(stuck, flights))


def missing_ranks(rank: int, flights: Sequence[FlightEntry]) -> set[int]:
    """The ranks that `rank`, inside its last record, still waits for."""
    mine = flights[rank].last
    if mine is None:
        return set()
    if not mine.is_collective:
        return _missing_peers(rank, mine, flights)
    return _missing_members(rank, mine, flights)


def _missing_members(rank: int, mine: FlightRecord, flights: Sequence[FlightEntry]) -> set[int]:
    """The members of a collective's group that have not entered it, or called something else."""
    missing = set()
    for other in mine.ranks or ():
        if other == rank or other >= len(flights):
            continue
        theirs = flights[other].find(mine.key, mine.seq)
        if theirs is not None:
            if not agree(mine, theirs):
                missing.add(other)
            continue
        number = flights[other].streams.number(mine.key)
        if number is not None and number < mine.seq:
            missing.add(other)
    return missing


def _missing_peers(rank: int, mine: FlightRecord, flights: Sequence[FlightEntry]) -> set[int]:
    """The other sides of a send or receive that have not done their part yet."""
    missing = set()
    sender = mine.source if mine.op == "send_recv" else mine.peer
    for other, way, needed in ((mine.peer, FROM, mine.outgoing), (sender, TO, mine.came)):
        if needed and other is not None and other < len(flights):
            number = flights[other].streams.number(mine.key, way, rank)
            if number is not None and number < needed:
                missing.add(other)
    return missing


def _joining(record: FlightRecord) -> str:
    return "answering" if record.op in POINT_TO_POINT else "calling"


def _circle(stuck: Collection[int], flights: Sequence[FlightEntry]) -> str:
    said = []
    for rank in sorted(stuck):
        record = flights[rank].last
        if record is not None:
            said.append(f"rank {rank} in {record.describe()}")
    return f"the ranks wait for each other: {'; '.join(said)}"
