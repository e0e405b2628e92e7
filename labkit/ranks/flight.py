"""The flight recorder: what each rank is doing, readable while it is stuck or after it died.

Every rank writes its collectives into shared memory, which the parent process maps too
(`flight_entry.py` reads it). So the parent can say which collective a rank waits in without the
rank's help, even when that rank sits inside C code or was killed a moment ago.

The memory of one rank (`FLIGHT_BYTES`, in 8-byte words) has a header and two tables:

    header   operations so far, those before this call, streams in use, "the table is full"
    records  a ring of the last `NUM_RECORDS` operations, for telling what happened
    streams  what must match between ranks, from the first operation of the call to the last

A stream is the collectives of one group, or the messages to (or from) one rank within a group. It
holds their number and a checksum over all of them, so that ranks can be compared exactly after any
number of operations.
"""

from __future__ import annotations

import marshal
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from zlib import crc32

NUM_RECORDS = 32
RECORD_BYTES = 512
NUM_STREAMS = 1024
STREAM_BYTES = 128
HEADER_WORDS = 8
RECORD_WORDS = RECORD_BYTES // 8
STREAM_WORDS = STREAM_BYTES // 8
FIRST_STREAM = HEADER_WORDS + NUM_RECORDS * RECORD_WORDS
# The last stream is where those that find the table full write: nobody reads it.
FLIGHT_BYTES = 8 * (FIRST_STREAM + (NUM_STREAMS + 1) * STREAM_WORDS)

COUNT, BEFORE, STREAMS, FULL = range(4)  # words of the header
# Words of a record. VERSION is odd while the record is written.
VERSION, STATE, LENGTH, GROUP, SEQ, OUTGOING, INCOMING, STARTED, BODY = range(9)
# Words of a stream.
KEY, WAY, NUMBER, DIGEST, BALANCE, MEMBERS_LOW, MEMBERS_HIGH, NAME_LENGTH, NAME = range(9)

IN, DONE = 1, 2
TOGETHER, TO, FROM = 0, 1, 2  # ways of a stream: a collective; messages to, messages from a rank
MAX_BODY = RECORD_BYTES - 8 * BODY
MAX_NAME = STREAM_BYTES - 8 * NAME
MAX_MEMBERS = 128  # ranks from here on are not noted as members

_WORD = (1 << 64) - 1
_MAX_NOTES = 1024

Splits = tuple[tuple[int, ...], tuple[int, ...]]  # rows sent to each rank, rows got from each


class FlightGroup:
    """A group of ranks as its records name it; made by `FlightRecorder.group`.

    Attributes:
        label: its name, with a number from the second group of that name and ranks in a call on.
        key: the same on all ranks of the group, and of no other group.
        members: bit r is set when world rank r belongs to it; 0: not known.
    """

    def __init__(self, name: str, ranks: tuple[int, ...] | None, number: int, label: str) -> None:
        plan = repr((name, ranks, number)).encode()
        self.key = int.from_bytes(blake2b(plan, digest_size=8).digest(), "little")
        self.label = label if len(label.encode()) <= MAX_NAME else f"{label[: MAX_NAME // 4]}..."
        self.members = (1 << MAX_MEMBERS) - 1 if ranks is None else sum(1 << r for r in ranks)
        if self.members >> MAX_MEMBERS:
            self.members = 0


class _Stream:
    """One stream of this rank; `at` is its first word in the table."""

    __slots__ = ("at", "balance", "digest", "number")

    def __init__(self, at: int) -> None:
        self.at = at
        self.number = self.digest = self.balance = 0


@dataclass(slots=True)
class _Note:
    """What one kind of operation writes each time: worked out once, then looked up."""

    body: bytes
    together: _Stream | None = None
    to: _Stream | None = None
    source: _Stream | None = None
    text: bytes = b""  # what the other ranks must say too
    incoming: bytes = b""  # what the sender must say
    balance: int = 0  # sums to zero over the ranks when all their splits match


class FlightRecorder:
    """Writes one rank's side. Cheap enough (a few microseconds) to be always on.

    `buffer` is any writable buffer of `FLIGHT_BYTES`, normally shared memory.
    """

    def __init__(self, buffer: Any) -> None:
        view = memoryview(buffer)
        if view.nbytes < FLIGHT_BYTES:
            raise ValueError(f"flight buffer of {view.nbytes} bytes; {FLIGHT_BYTES} are needed")
        self._bytes = view.cast("B")[:FLIGHT_BYTES]
        self._words = self._bytes.cast("Q")
        self._seconds = self._bytes.cast("d")
        self._count = self._words[COUNT]
        self._record = HEADER_WORDS
        self._notes: dict[tuple[Any, ...], _Note] = {}
        self._streams: dict[tuple[int, int, int], _Stream] = {}
        self._messages: Counter[int] = Counter()
        self._made: Counter[tuple[str, tuple[int, ...] | None]] = Counter()
        self._made_in_call: Counter[tuple[str, tuple[int, ...] | None]] = Counter()

    @classmethod
    def null(cls) -> FlightRecorder:
        """A recorder that nobody reads, for a group of one or a run under torchrun."""
        return cls(bytearray(FLIGHT_BYTES))

    def group(self, name: str, ranks: Sequence[int] | None = None) -> FlightGroup:
        """A new group of these world ranks (None: all of them), to be passed to `enter`.

        All its members must make it, and groups of the same name and ranks in the same order.
        """
        plan = (name, None if ranks is None else tuple(ranks))
        self._made[plan] += 1
        self._made_in_call[plan] += 1
        again = self._made_in_call[plan]
        return FlightGroup(*plan, self._made[plan], name if again == 1 else f"{name} ({again})")

    def enter(
        self,
        group: FlightGroup,
        op: str,
        shape: Sequence[int] = (),
        dtype: object = "",
        *,
        peer: int | None = None,
        source: int | None = None,
        incoming: tuple[Sequence[int], object] | None = None,
        detail: str = "",
        splits: Splits | None = None,
    ) -> int:
        """Note that this rank enters `op`; returns its number in the group.

        Args:
            peer: world rank of the other side of a send or receive, or of a broadcast's source.
            source: of a `send_recv`: the world rank that it receives from.
            incoming: of a `send_recv`: shape and dtype of what it receives.
            detail: what else all ranks must agree on, such as the reduction if it is no sum.
            splits: of an `all_to_all`: rows to and from each rank of the group.
        """
        key = (group, op, shape, dtype, peer, source, incoming, detail, splits)
        note = self._notes.get(key) or self._new_note(key)
        words = self._words
        record = HEADER_WORDS + (self._count % NUM_RECORDS) * RECORD_WORDS
        words[record + VERSION] += 1
        outgoing = came = 0
        if note.together is not None:
            seq = self._advance(note.together, note.text)
            if note.balance:
                stream = note.together
                stream.balance = (stream.balance + (2 * seq + 1) * note.balance) & _WORD
                words[stream.at + BALANCE] = stream.balance
        else:
            self._messages[group.key] += 1
            seq = self._messages[group.key]
            outgoing = 0 if note.to is None else self._advance(note.to, note.text)
            came = 0 if note.source is None else self._advance(note.source, note.incoming)
        words[record + STATE] = IN
        words[record + LENGTH] = len(note.body)
        words[record + GROUP] = group.key
        words[record + SEQ] = seq
        words[record + OUTGOING] = outgoing
        words[record + INCOMING] = came
        self._seconds[record + STARTED] = time.monotonic()
        start = 8 * (record + BODY)
        self._bytes[start : start + len(note.body)] = note.body
        words[record + VERSION] += 1
        self._record = record
        self._count += 1
        words[COUNT] = self._count
        return seq

    def leave(self) -> None:
        """Note that the operation entered last is over."""
        self._words[self._record + STATE] = DONE

    def new_call(self) -> None:
        """Note that a new call begins: count from 1 again."""
        self._words[BEFORE] = self._count
        self._words[STREAMS] = self._words[FULL] = 0
        for counts in (self._notes, self._streams, self._messages, self._made_in_call):
            counts.clear()

    def _advance(self, stream: _Stream, text: bytes) -> int:
        """Count one more operation in a stream, `text` being what the other side must say too."""
        stream.number += 1
        stream.digest = crc32(text, stream.digest)
        self._words[stream.at + NUMBER] = stream.number
        self._words[stream.at + DIGEST] = stream.digest
        return stream.number

    def _new_note(self, key: tuple[Any, ...]) -> _Note:
        group, op, shape, dtype, peer, source, incoming, detail, splits = key
        shape, dtype = tuple(shape), _dtype_name(dtype)
        if incoming is not None:
            incoming = (tuple(incoming[0]), _dtype_name(incoming[1]))
        said = (group.label, op, shape, dtype, peer, source, incoming, detail, splits)
        body = marshal.dumps(said)
        if len(body) > MAX_BODY:
            body = marshal.dumps((*said[:-1], None))
        if len(body) > MAX_BODY:
            body = marshal.dumps((*said[:1], op[:40], (), *said[3:7], detail[:40], None))
        note = _Note(body)
        match op:
            case "send":
                note.to, note.text = self._stream(group, TO, peer), _message(shape, dtype)
            case "recv":
                note.source, note.incoming = self._stream(group, FROM, peer), _message(shape, dtype)
            case "send_recv":
                note.to, note.text = self._stream(group, TO, peer), _message(shape, dtype)
                if source is not None and incoming is not None:
                    note.source = self._stream(group, FROM, source)
                    note.incoming = _message(*incoming)
            case _:
                same = shape[1:] if op == "all_to_all" else shape
                note.text = marshal.dumps((op, same, dtype, peer, detail))
                note.together = self._stream(group, TOGETHER, 0)
        if splits is not None:
            note.balance = _balance(splits, group)
        if len(self._notes) >= _MAX_NOTES:
            self._notes.clear()
        self._notes[key] = note
        return note
