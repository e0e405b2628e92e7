"""Calls on record that must be the same on several ranks and are not: pure functions.

Collectives of a group must be the same calls in the same order on each of its ranks, and every
message must be received as what was sent.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labkit.ranks.flight_entry import FlightEntry, FlightRecord


@dataclass(frozen=True)
class Verdict:
    """Ranks that do not go together, the one to blame, and why, in one sentence."""

    culprit: int
    ranks: tuple[int, ...]
    reason: str


def find_conflict(flights: Sequence[FlightEntry]) -> Verdict | None:
    """The earliest calls on record that must be the same on several ranks and are not."""
    together: defaultdict[tuple[int, int], dict[int, FlightRecord]] = defaultdict(dict)
    sent: dict[tuple[int, int, int, int], FlightRecord] = {}
    received: dict[tuple[int, int, int, int], FlightRecord] = {}
    for rank, flight in enumerate(flights):
        for record in flight.history:
            if record.is_collective:
                together[record.key, record.seq][rank] = record
            if record.outgoing and record.peer is not None:
                sent[record.key, rank, record.peer, record.outgoing] = record
            sender = record.source if record.op == "send_recv" else record.peer
            if record.came and sender is not None:
                received[record.key, sender, rank, record.came] = record
    found: list[tuple[float, Verdict]] = []
    for calls in together.values():
        verdict = _compare_calls(calls) or _compare_splits(calls)
        if verdict is not None:
            found.append((min(record.started for record in calls.values()), verdict))
    for (_, sender, receiver, number), record in sent.items():
        other = received.get((record.key, sender, receiver, number))
        if other is not None and (verdict := _compare_message(sender, record, receiver, other)):
            found.append((min(record.started, other.started), verdict))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def agree(a: FlightRecord, b: FlightRecord) -> bool:
    """Whether two collectives are the same call."""
    return _must_agree(a) == _must_agree(b)


def name_ranks(ranks: Sequence[int]) -> str:
    """`rank 1`, `ranks 0 and 2`, `ranks 0, 1 and 3`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _must_agree(record: FlightRecord) -> tuple[object, ...]:
    """What must be the same on every rank of the group. Ranks may exchange unequal rows."""
    shape = record.shape[1:] if record.op == "all_to_all" else record.shape
    return (record.op, record.peer, record.detail, record.dtype, shape)


def _compare_calls(calls: Mapping[int, FlightRecord]) -> Verdict | None:
    """`calls`: the same number of the same group, by rank."""
    said = {rank: _must_agree(record) for rank, record in calls.items()}
    if len(set(said.values())) <= 1:
        return None
    first = next(iter(calls.values()))
    usual = Counter(said.values()).most_common(1)[0][0]
    culprit = next(rank for rank, what in said.items() if what != usual)
    told = "; ".join(f"rank {rank} {record.call()}" for rank, record in calls.items())
    kinds = [
        kind
        for kind, values in zip(
            ("calls", "sources", "reductions", "dtypes", "sizes"),
            zip(*said.values(), strict=True),
            strict=True,
        )
        if len(set(values)) > 1
    ]
    hint = f" (a mismatch of {' and '.join(kinds)})" if "calls" not in kinds else ""
    reason = f"the ranks called different things as number {first.seq} of {first.group}: {told}"
    return Verdict(culprit, tuple(calls), reason + hint)


def _compare_splits(calls: Mapping[int, FlightRecord]) -> Verdict | None:
    """Whether what one rank sends another in an all_to_all is what that one expects."""
    splits = {rank: record.splits for rank, record in calls.items()}
    for sender, ours in splits.items():
        for receiver, theirs in splits.items():
            if ours is None or theirs is None:
                continue
            rows, expected = ours.sent[theirs.rank], theirs.came[ours.rank]
            if rows != expected:
                reason = (
                    f"a mismatch of sizes in {calls[sender].describe()}: rank {sender} sends "
                    f"rank {receiver} {rows} rows (input_splits), and rank {receiver} expects "
                    f"{expected} (output_splits)"
                )
                return Verdict(receiver, (sender, receiver), reason)
    return None


def _compare_message(
    sender: int, sent: FlightRecord, receiver: int, received: FlightRecord
) -> Verdict | None:
    shape, dtype = received.shape, received.dtype
    if received.op == "send_recv":
        if received.incoming is None:
            return None
        shape, dtype = received.incoming
    kinds = []
    if sent.dtype != dtype:
        kinds.append("dtypes")
    if math.prod(sent.shape) != math.prod(shape):
        kinds.append("sizes")
    if not kinds:
        return None
    reason = (
        f"a mismatch of {' and '.join(kinds)} in message {sent.outgoing} from rank {sender} to "
        f"rank {receiver} [{sent.group}]: rank {sender} sends {sent.dtype} {sent.shape}, "
        f"rank {receiver} receives it as {dtype} {shape}"
    )
    return Verdict(receiver, (sender, receiver), reason)
