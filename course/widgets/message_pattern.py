"""Who sends to whom in one step of an algorithm, in a few words."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labkit.ranks.algorithm_record import Move

Ends = tuple[int, int]
"""The sending and the receiving rank."""


def merged(moves: Iterable[Move]) -> dict[Ends, list[Move]]:
    """Moves by their ends: what goes from one rank to another in one step."""
    by_ends: dict[Ends, list[Move]] = {}
    for move in moves:
        by_ends.setdefault((move.src, move.dst), []).append(move)
    return by_ends


def who_sends(messages: Collection[Ends], ranks: int) -> str:
    """The messages of one step: a ring, pairs, everybody to everybody, or one by one."""
    ends = set(messages)
    if not ends:
        return "nothing is sent"
    hop = _common_hop(ends, ranks)
    if len(ends) == ranks * (ranks - 1) and ranks > 2:
        return "every rank sends to every other"
    if hop is not None and ranks > 2 and 2 * hop != ranks:
        return f"each rank sends to the one {f'{hop} places ' if hop > 1 else ''}after it"
    if _are_pairs(ends):
        pairs = ", ".join(f"{a} with {b}" for a, b in sorted(ends) if a < b)
        return f"ranks exchange in pairs: {pairs}"
    by_sender: dict[int, list[str]] = {}
    for src, dst in sorted(ends):
        by_sender.setdefault(src, []).append(str(dst))
    return ", ".join(f"rank {src} sends to {' and '.join(to)}" for src, to in by_sender.items())


def _common_hop(ends: set[Ends], ranks: int) -> int | None:
    """How far every rank sends round the ring; None unless all send equally far."""
    hops = {(dst - src) % ranks for src, dst in ends}
    return hops.pop() if len(hops) == 1 and len(ends) == ranks else None


def _are_pairs(ends: set[Ends]) -> bool:
    receivers = [dst for _, dst in ends]
    return len(set(receivers)) == len(receivers) and all((b, a) in ends for a, b in ends)
