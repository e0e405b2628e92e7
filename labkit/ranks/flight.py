"""The flight recorder: what each rank is doing, readable while it is stuck or after it died.

Every rank writes its operations into shared memory (`flight_memory.py`), and the parent process
reads them there (`flight_entry.py`). So the parent can say which collective a rank waits in without
the rank's help, even when that rank sits inside C code or was killed a moment ago.
"""

from __future__ import annotations

import marshal
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from labkit.ranks import flight_memory as memory
from labkit.ranks.flight_group import WORD, FlightGroup, Splits
from labkit.ranks.flight_memory import FLIGHT_BYTES

_MAX_NOTES = 1024


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
        self._write_to(buffer)
        self._made: Counter[tuple[str, tuple[int, ...] | None]] = Counter()
        self._made_in_call: Counter[tuple[str, tuple[int, ...] | None]] = Counter()

    def _write_to(self, buffer: Any) -> None:
        view = memoryview(buffer)
        if view.nbytes < FLIGHT_BYTES:
            raise ValueError(f"flight buffer of {view.nbytes} bytes; {FLIGHT_BYTES} are needed")
        self._bytes = view.cast("B")[:FLIGHT_BYTES]
        self._words = self._bytes.cast("Q")
        self._seconds = self._bytes.cast("d")
        self._count = self._words[memory.COUNT]
        self._record = memory.HEADER_WORDS
        self._notes: dict[tuple[Any, ...], _Note] = {}
        self._streams: dict[tuple[int, int, int], _Stream] = {}
        self._messages: Counter[int] = Counter()

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
            splits: of an `all_to_all`.
        """
        key = (group, op, shape, dtype, peer, source, incoming, detail, splits)
        note = self._notes.get(key) or self._new_note(key)
        words = self._words
        record = memory.HEADER_WORDS + (self._count % memory.NUM_RECORDS) * memory.RECORD_WORDS
        words[record + memory.VERSION] += 1
        outgoing = came = 0
        if note.together is not None:
            seq = self._advance(note.together, note.text)
            if note.balance:
                stream = note.together
                stream.balance = (stream.balance + (2 * seq + 1) * note.balance) & WORD
                words[stream.at + memory.BALANCE] = stream.balance
        else:
            self._messages[group.key] += 1
            seq = self._messages[group.key]
            outgoing = 0 if note.to is None else self._advance(note.to, note.text)
            came = 0 if note.source is None else self._advance(note.source, note.incoming)
        words[record + memory.STATE] = memory.IN
        words[record + memory.LENGTH] = len(note.body)
        words[record + memory.GROUP] = group.key
        words[record + memory.SEQ] = seq
        words[record + memory.OUTGOING] = outgoing
        words[record + memory.INCOMING] = came
        self._seconds[record + memory.STARTED] = time.monotonic()
        start = 8 * (record + memory.BODY)
        self._bytes[start : start + len(note.body)] = note.body
        words[record + memory.VERSION] += 1
        self._record = record
        self._count += 1
        words[memory.COUNT] = self._count
        return seq

    def leave(self) -> None:
        """Note that the operation entered last is over."""
        self._words[self._record + memory.STATE] = memory.DONE

    def new_call(self, number: int = 0) -> None:
        """Note that call `number` begins: count from 1 again."""
        self._words[memory.BEFORE] = self._count
        self._words[memory.STREAMS] = self._words[memory.FULL] = 0
        for counts in (self._notes, self._streams, self._messages, self._made_in_call):
            counts.clear()
        self._words[memory.CALL] = number

    def detach(self) -> None:
        """In a fork of this rank: what happens here is not what the rank does."""
        self._write_to(bytearray(FLIGHT_BYTES))

    def _advance(self, stream: _Stream, text: bytes) -> int:
        """Count one more operation in a stream, `text` being what the other side must say too."""
        stream.number += 1
        stream.digest = crc32(text, stream.digest)
        self._words[stream.at + memory.NUMBER] = stream.number
        self._words[stream.at + memory.DIGEST] = stream.digest
        return stream.number

    def _new_note(self, key: tuple[Any, ...]) -> _Note:
        group, op, shape, dtype, peer, source, incoming, detail, splits = key
        shape, dtype = tuple(shape), _dtype_name(dtype)
        if incoming is not None:
            incoming = (tuple(incoming[0]), _dtype_name(incoming[1]))
        said = (
            group.label,
            op,
            shape,
            dtype,
            peer,
            source,
            incoming,
            detail,
            splits and tuple(splits),
        )
        body = marshal.dumps(said)
        if len(body) > memory.MAX_BODY:
            body = marshal.dumps((*said[:-1], None))
        if len(body) > memory.MAX_BODY:
            body = marshal.dumps((*said[:1], op[:40], (), *said[3:6], None, detail[:40], None))
        note = _Note(body)
        match op:
            case "send":
                note.to, note.text = self._stream(group, memory.TO, peer), _message(shape, dtype)
            case "recv":
                note.source, note.incoming = (
                    self._stream(group, memory.FROM, peer),
                    _message(shape, dtype),
                )
            case "send_recv":
                note.to, note.text = self._stream(group, memory.TO, peer), _message(shape, dtype)
                if source is not None and incoming is not None:
                    note.source = self._stream(group, memory.FROM, source)
                    note.incoming = _message(*incoming)
            case _:
                same = shape[1:] if op == "all_to_all" else shape
                note.text = marshal.dumps((op, same, dtype, peer, detail))
                note.together = self._stream(group, memory.TOGETHER, 0)
        if splits is not None:
            note.balance = splits.balance()
        if len(self._notes) >= _MAX_NOTES:
            self._notes.clear()
        self._notes[key] = note
        return note

    def _stream(self, group: FlightGroup, way: int, peer: int) -> _Stream:
        """The stream of this group, way and world rank, added to the table on first use."""
        stream = self._streams.get((group.key, way, peer))
        if stream is not None:
            return stream
        words, index = self._words, self._words[memory.STREAMS]
        stream = _Stream(memory.FIRST_STREAM + index * memory.STREAM_WORDS)
        self._streams[group.key, way, peer] = stream
        if index == memory.NUM_STREAMS:
            words[memory.FULL] = 1
            return stream
        name = group.label.encode()
        words[stream.at + memory.KEY] = group.key
        words[stream.at + memory.WAY] = way | peer << 2
        words[stream.at + memory.MEMBERS_LOW] = group.members & WORD
        words[stream.at + memory.MEMBERS_HIGH] = group.members >> 64
        words[stream.at + memory.NAME_LENGTH] = len(name)
        words[stream.at + memory.NUMBER] = words[stream.at + memory.DIGEST] = 0
        words[stream.at + memory.BALANCE] = 0
        start = 8 * (stream.at + memory.NAME)
        self._bytes[start : start + len(name)] = name
        words[memory.STREAMS] = index + 1
        return stream


def _dtype_name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


def _message(shape: Sequence[int], dtype: str) -> bytes:
    """What both sides of a message must say: the shape may differ, the number of elements not."""
    return marshal.dumps((dtype, math.prod(shape)))
