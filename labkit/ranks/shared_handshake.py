"""How the ranks of a group come to share memory: they ask each other, once, over the backend."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from labkit.ranks import collectives
from labkit.ranks.shared_memory import SLOT_BYTES, SharedMemory
from labkit.ranks.shared_rounds import Rounds
from labkit.ranks.shared_segment import (
    Layout,
    Segment,
    host_id,
    make_segment,
    open_segment,
    start_time,
    why_no_segments,
)
from labkit.ranks.shared_signals import SPINS, Signals

MAX_RANKS = 32
_CARD_BYTES = 1024
_NO_LIMIT = timedelta(days=7)


def attempt(
    group: dist.ProcessGroup, timeout: timedelta | None = None, slot_bytes: int = SLOT_BYTES
) -> tuple[SharedMemory | None, str]:
    """The transport, or None; and why, in a sentence. Every rank of `group` calls it.

    Costs two small collectives of the backend. All ranks get the same answer.

    Args:
        timeout: how long a rank may wait for the others in a collective.
        slot_bytes: what a rank can pass to the others at once.
    """
    size, me = group.size(), group.rank()
    if size > MAX_RANKS:
        return None, f"{size} ranks are more than the {MAX_RANKS} that may share memory"
    layout = Layout(size, slot_bytes)
    fd, segment, reason = _make(layout) if me == 0 else (-1, None, why_no_segments())
    try:
        cards = _exchange(group, _card(size, reason, fd, segment))
        if reason := _first_reason(cards):
            return None, reason
        if segment is None:
            segment, reason = _open(cards[0], layout)
        if reason := _first_reason(_exchange(group, {"reason": reason})):
            return None, reason
    finally:
        if fd >= 0:
            os.close(fd)
    assert segment is not None
    have_cores = all(card["has_cores"] for card in cards)  # alike on all: how they sum hangs on it
    rounds = Rounds(
        segment,
        Signals(segment.signals, size, me, spins=SPINS if have_cores else 0),
        me,
        ranks=dist.get_process_group_ranks(group),
        processes=[(card["pid"], card["started"]) for card in cards],
        timeout=(timeout or _NO_LIMIT).total_seconds(),
        have_cores=have_cores,
    )
    return SharedMemory(segment, rounds, me), f"its {size} ranks run on one host"


def _make(layout: Layout) -> tuple[int, Segment | None, str]:
    """On rank 0: a file descriptor and what it stands for, or why there is none."""
    if reason := why_no_segments():
        return -1, None, reason
    try:
        return *make_segment(layout), ""
    except OSError as error:
        return -1, None, f"this system gives no {layout.total} bytes of shared memory ({error})"


def _open(card: dict[str, Any], layout: Layout) -> tuple[Segment | None, str]:
    """On the other ranks: what rank 0 made, or why it cannot be had."""
    try:
        return open_segment(card["pid"], card["fd"], bytes.fromhex(card["nonce"]), layout), ""
    except OSError as error:
        return None, f"a rank may not open the memory of another ({error})"


def _card(size: int, reason: str, fd: int, segment: Segment | None) -> dict[str, Any]:
    """What this rank tells the others about itself."""
    return {
        "reason": reason[:300],
        "host": host_id(),
        "pid": os.getpid(),
        "started": start_time(os.getpid()) or "",
        "has_cores": not reason and _has_cores_for_all(size),  # only Linux tells
        "fd": fd,
        "nonce": "" if segment is None else segment.nonce.hex(),
    }


def _first_reason(cards: list[dict[str, Any]]) -> str:
    """Why these ranks cannot share memory; the same on every rank, empty if they can."""
    reason = next((card["reason"] for card in cards if card["reason"]), "")
    if not reason and len({card.get("host") for card in cards}) > 1:
        reason = "its ranks run on several hosts, or in containers that do not see each other"
    return reason


def _exchange(group: dist.ProcessGroup, card: dict[str, Any]) -> list[dict[str, Any]]:
    """Every rank's card, in rank order."""
    text = json.dumps(card).encode().ljust(_CARD_BYTES)
    cards = collectives.all_gather(torch.frombuffer(bytearray(text), dtype=torch.uint8), 0, group)
    return [json.loads(bytes(part.tolist())) for part in cards.split(_CARD_BYTES)]


def _has_cores_for_all(size: int) -> bool:
    """Whether each rank on this host can have a core, as far as this rank's own affinity tells: a
    rank that spins on it takes it."""
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size()))
    return max(size, ranks) <= len(os.sched_getaffinity(0))
