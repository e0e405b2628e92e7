"""What one rank wrote into its flight recorder, as the parent reads it."""

from __future__ import annotations

import marshal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from labkit.ranks import flight_memory as memory
from labkit.ranks.flight_group import Splits

POINT_TO_POINT = frozenset({"send", "recv", "send_recv"})
_MAX_SHOWN = 8  # ranks of a group

State = Literal["in", "done", "idle"]
StreamKey = tuple[int, int, int]  # key of the group; TOGETHER, TO or FROM; the other world rank


@dataclass(frozen=True)
class FlightRecord:
    """One collective, or one send or receive, as seen by one rank."""

    group: str
    key: int  # the same for no other group
    ranks: tuple[int, ...] | None  # world ranks of the group; None: not known
    op: str
    shape: tuple[int, ...]
    dtype: str
    peer: int | None  # world rank of the other side, or of a broadcast's source
    source: int | None  # of a send_recv: the world rank it receives from
    incoming: tuple[tuple[int, ...], str] | None  # of a send_recv: shape and dtype it receives
    detail: str  # "max", "dim 1"; "" for the usual
    splits: Splits | None  # of an all_to_all
    seq: int  # 1, 2, ... per group and call; sends and receives have their own count
    outgoing: int  # 1, 2, ... per receiver: the number of the message sent; 0: none
    came: int  # the same per sender, for the message received
    started: float  # time.monotonic(), the same clock in every process of one machine
    state: State

    @property
    def is_collective(self) -> bool:
        return self.op not in POINT_TO_POINT

    def describe(self) -> str:
        """`all_reduce float32 (4,) [world #3]`, the form used in every report."""
        members = ""
        if self.ranks and self.group != "world":
            shown = [str(rank) for rank in self.ranks]
            if len(shown) > _MAX_SHOWN:
                shown = [*shown[: _MAX_SHOWN - 1], "...", shown[-1]]
            members = f" [{', '.join(shown)}]"
        return f"{self.call()} [{self.group}{members} #{self.seq}]"

    def call(self) -> str:
        """`all_reduce(max) float32 (4,)`: what was called, without where."""
        op = f"{self.op}({self.detail})" if self.detail else self.op
        tensor = f" {self.dtype} {self.shape}" if self.dtype else ""
        if self.peer is None:
            return op + tensor
        way = "from" if self.op in ("recv", "broadcast") else "to"
        source = "" if self.source in (None, self.peer) else f" and from rank {self.source}"
        return f"{op}{tensor} {way} rank {self.peer}{source}"


@dataclass(frozen=True)
class Stream:
    """All collectives of a group, or all messages to or from one rank, that a rank has entered."""

    group: str
    members: int  # bit r: world rank r belongs to the group; 0: not known
    number: int
    digest: int  # checksum over what must agree
    balance: int  # of splits; the sum over the ranks is 0 (modulo 2^64) when they match

    def ranks(self, size: int) -> list[int]:
        """The members among `size` ranks."""
        return [rank for rank in range(size) if self.members >> rank & 1]


@dataclass(frozen=True)
class Streams:
    """The streams of one rank. With more than fit into the table, not all of them are known."""

    known: Mapping[StreamKey, Stream] = field(default_factory=dict)
    are_all: bool = True

    def number(self, group: int, way: int = memory.TOGETHER, peer: int = 0) -> int | None:
        """How many operations this rank has entered there; None: not known."""
        stream = self.known.get((group, way, peer))
        if stream is not None:
            return stream.number
        return 0 if self.are_all else None


@dataclass(frozen=True)
class FlightEntry:
    """What one rank did in this call: its state, its last record, the last records (oldest first).

    `state` is "in" inside a collective, "done" after one, "idle" before the call's first.
    `counter` grows by two per collective: once on entering and once on leaving.
    """

    state: State
    counter: int
    last: FlightRecord | None
    history: tuple[FlightRecord, ...] = ()
    streams: Streams = field(default_factory=Streams)

    def find(self, group: int, seq: int) -> FlightRecord | None:
        """The record of collective number `seq` of the group with that key, if still there."""
        for record in reversed(self.history):
            if record.is_collective and (record.key, record.seq) == (group, seq):
                return record
        return None


def read_flight(buffer: Any, call: int = 0) -> FlightEntry:
    """Read what a rank wrote, from another process, whatever that rank is doing meanwhile.

    What it wrote before it began call number `call` says nothing about that call: it is idle.
    A record that changes while it is read is read again; one left half written by a dead rank is
    dropped.
    """
    view = memoryview(buffer).cast("B")[: memory.FLIGHT_BYTES]
    words = view.cast("Q")
    if words[memory.CALL] != call:
        return FlightEntry("idle", 2 * words[memory.COUNT], None)
    for _ in range(100):
        count, before = words[memory.COUNT], words[memory.BEFORE]
        oldest = max(before, count - memory.NUM_RECORDS)
        streams = read_streams(buffer)
        members = {key[0]: stream.members for key, stream in streams.known.items()}
        records = [_read_record(view, words, index, members) for index in range(oldest, count)]
        if words[memory.COUNT] == count:
            break
    history = tuple(record for record in records if record is not None)
    last = history[-1] if history else None
    state: State = "idle" if last is None else last.state
    return FlightEntry(state, 2 * count - (state == "in"), last, history, streams)


def read_streams(buffer: Any) -> Streams:
    """Read only the streams: exact while the rank is between operations, one behind in them."""
    view = memoryview(buffer).cast("B")[: memory.FLIGHT_BYTES]
    words = view.cast("Q")
    is_full = bool(words[memory.FULL])
    return Streams(dict(_each_stream(view, words)), are_all=not is_full)


def _each_stream(view: memoryview, words: memoryview) -> Iterator[tuple[StreamKey, Stream]]:
    for index in range(words[memory.STREAMS]):
        at = memory.FIRST_STREAM + index * memory.STREAM_WORDS
        key, way, number, digest, balance, low, high, length = words[at : at + memory.NAME]
        name = bytes(view[8 * (at + memory.NAME) :][:length]).decode()
        yield (key, way & 3, way >> 2), Stream(name, low | high << 64, number, digest, balance)


def _read_record(
    view: memoryview, words: memoryview, index: int, members: Mapping[int, int]
) -> FlightRecord | None:
    at = memory.HEADER_WORDS + (index % memory.NUM_RECORDS) * memory.RECORD_WORDS
    for _ in range(100):
        version, state, length, key, seq, outgoing, came = words[at : at + memory.STARTED]
        (started,) = view[8 * (at + memory.STARTED) : 8 * (at + memory.BODY)].cast("d")
        body = bytes(view[8 * (at + memory.BODY) :][: min(length, memory.MAX_BODY)])
        if version % 2 == 0 and words[at + memory.VERSION] == version:
            group, op, shape, dtype, peer, source, incoming, detail, splits = marshal.loads(body)
            mask = members.get(key, 0)
            ranks = tuple(r for r in range(memory.MAX_MEMBERS) if mask >> r & 1) or None
            return FlightRecord(
                group=group,
                key=key,
                ranks=ranks,
                op=op,
                shape=shape,
                dtype=dtype,
                peer=peer,
                source=source,
                incoming=incoming,
                detail=detail,
                splits=None if splits is None else Splits(*splits),
                seq=seq,
                outgoing=outgoing,
                came=came,
                started=started,
                state="in" if state == memory.IN else "done",
            )
        time.sleep(0)
    return None
