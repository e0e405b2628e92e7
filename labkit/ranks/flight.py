"""The flight recorder: what each rank is doing, readable while it is stuck or after it died.

Every rank writes its collectives into a small ring in shared memory: one record when it enters a
collective, one flag when it leaves. The parent process maps the same memory, so it can say which
collective a rank waits in without the rank's help, even when that rank sits inside C code or was
killed a moment ago.

Memory of one rank (`FLIGHT_BYTES`): two 8-byte words (records so far; those before this call), then
`NUM_RECORDS` records of `RECORD_BYTES`: version (odd while being written), state, length, body.
"""

from __future__ import annotations

import marshal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

NUM_RECORDS = 32
RECORD_BYTES = 512
FLIGHT_BYTES = 64 + NUM_RECORDS * RECORD_BYTES

_WORDS_PER_RECORD = RECORD_BYTES // 8
_FIRST_RECORD = 8  # words; the header is 64 bytes
_COUNT, _BEFORE = 0, 1  # words of the header
_VERSION, _STATE, _LENGTH, _BODY = 0, 1, 2, 3  # words of a record
_MAX_BODY = RECORD_BYTES - 8 * _BODY
_IN, _DONE = 1, 2

POINT_TO_POINT = frozenset({"send", "recv", "send_recv"})
_PEER_WORD = {"send": "to", "send_recv": "to"}

State = Literal["in", "done", "idle"]


@dataclass(frozen=True)
class FlightRecord:
    """One collective, or one send or receive, as seen by one rank."""

    group: str
    ranks: tuple[int, ...] | None  # world ranks of the group; None: all of them
    op: str
    shape: tuple[int, ...]
    dtype: str
    peer: int | None  # world rank of the other side, or of a broadcast's source
    seq: int  # 1, 2, ... per group and call; sends and receives have their own count
    started: float  # time.monotonic(), the same clock in every process of one machine
    state: State

    @property
    def is_collective(self) -> bool:
        return self.op not in POINT_TO_POINT

    def describe(self) -> str:
        """`all_reduce float32 (4,) [world #3]`, the form used in every report."""
        tensor = f" {self.dtype} {self.shape}" if self.dtype else ""
        other = "" if self.peer is None else f" {_PEER_WORD.get(self.op, 'from')} rank {self.peer}"
        members = f" {list(self.ranks)}" if self.ranks and self.group != "world" else ""
        return f"{self.op}{tensor}{other} [{self.group}{members} #{self.seq}]"


@dataclass(frozen=True)
class FlightEntry:
    """What one rank did in this call: its state, its last record, all records (oldest first).

    `state` is "in" inside a collective, "done" after one, "idle" before the call's first.
    `counter` grows by two per collective: once on entering and once on leaving.
    """

    state: State
    counter: int
    last: FlightRecord | None
    history: tuple[FlightRecord, ...] = ()
    complete_history: bool = True  # False once older records were overwritten

    def find(self, group: str, ranks: tuple[int, ...] | None, seq: int) -> FlightRecord | None:
        """The record of collective number `seq` of that group, if this rank entered it lately."""
        for record in reversed(self.history):
            if (record.group, record.ranks, record.seq) == (group, ranks, seq) and (
                record.is_collective
            ):
                return record
        return None

    def last_seq(self, group: str, ranks: tuple[int, ...] | None) -> int | None:
        """Number of the last collective entered on that group; 0: none; None: no longer known."""
        for record in reversed(self.history):
            if (record.group, record.ranks) == (group, ranks) and record.is_collective:
                return record.seq
        return 0 if self.complete_history else None


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
        self._count = self._words[_COUNT]
        self._record = _FIRST_RECORD
        self._sequences: dict[tuple[str, tuple[int, ...] | None, bool], int] = {}

    @classmethod
    def null(cls) -> FlightRecorder:
        """A recorder that nobody reads, for a group of one or a run under torchrun."""
        return cls(bytearray(FLIGHT_BYTES))

    def enter(
        self,
        group: str,
        op: str,
        shape: Iterable[int] = (),
        dtype: object = "",
        peer: int | None = None,
        ranks: tuple[int, ...] | None = None,
    ) -> int:
        """Note that this rank enters `op`; returns its sequence number in the group.

        `peer` is the world rank of the other side of a send or receive, or of a broadcast's
        source; `ranks` are the world ranks of the group (None: all of them).
        """
        key = (group, ranks, op in POINT_TO_POINT)
        seq = self._sequences[key] = self._sequences.get(key, 0) + 1
        dtype_name = str(dtype).removeprefix("torch.")
        started = time.monotonic()
        body = marshal.dumps((group, ranks, op, tuple(shape), dtype_name, peer, seq, started))
        if len(body) > _MAX_BODY:
            body = marshal.dumps((group[:40], None, op[:40], (), dtype_name, peer, seq, started))
        words = self._words
        record = _FIRST_RECORD + (self._count % NUM_RECORDS) * _WORDS_PER_RECORD
        start = (record + _BODY) * 8
        words[record + _VERSION] += 1
        words[record + _STATE] = _IN
        words[record + _LENGTH] = len(body)
        self._bytes[start : start + len(body)] = body
        words[record + _VERSION] += 1
        self._record = record
        self._count += 1
        words[_COUNT] = self._count
        return seq

    def leave(self) -> None:
        """Note that the operation entered last is over."""
        self._words[self._record + _STATE] = _DONE

    def new_call(self) -> None:
        """Note that a new call begins: count from 1 again."""
        self._sequences.clear()
        self._words[_BEFORE] = self._count


def num_records(buffer: Any) -> int:
    """How many collectives, sends and receives a rank has entered in this call."""
    words = memoryview(buffer).cast("B")[:FLIGHT_BYTES].cast("Q")
    return words[_COUNT] - words[_BEFORE]


def read_flight(buffer: Any) -> FlightEntry:
    """Read what a rank wrote, from another process, whatever that rank is doing meanwhile.

    A record that changes while it is read is read again; one left half written by a dead rank is
    dropped.
    """
    view = memoryview(buffer).cast("B")[:FLIGHT_BYTES]
    words = view.cast("Q")
    for _ in range(100):
        count, before = words[_COUNT], words[_BEFORE]
        oldest = max(before, count - NUM_RECORDS)
        records = [_read_record(view, words, index) for index in range(oldest, count)]
        if words[_COUNT] == count:
            break
    history = tuple(record for record in records if record is not None)
    last = history[-1] if history else None
    state: State = "idle" if last is None else last.state
    counter = 2 * count - (state == "in")
    return FlightEntry(state, counter, last, history, count - before <= NUM_RECORDS)


def _read_record(view: memoryview, words: memoryview, index: int) -> FlightRecord | None:
    record = _FIRST_RECORD + (index % NUM_RECORDS) * _WORDS_PER_RECORD
    start = (record + _BODY) * 8
    for _ in range(100):
        version = words[record + _VERSION]
        state, length = words[record + _STATE], words[record + _LENGTH]
        body = bytes(view[start : start + min(length, _MAX_BODY)])
        if version % 2 == 0 and words[record + _VERSION] == version:
            group, ranks, op, shape, dtype, peer, seq, started = marshal.loads(body)
            return FlightRecord(
                group, ranks, op, shape, dtype, peer, seq, started, "in" if state == _IN else "done"
            )
        time.sleep(0)
    return None
