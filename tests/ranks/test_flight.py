"""The flight recorder: what one process writes, another reads, at any moment."""

from __future__ import annotations

import itertools
import mmap
import os
import signal
import time

import pytest

from labkit.ranks.flight import FlightRecorder
from labkit.ranks.flight_entry import read_flight
from labkit.ranks.flight_memory import FLIGHT_BYTES, MAX_NAME, NUM_RECORDS


def test_new_recorder_is_idle() -> None:
    memory = bytearray(FLIGHT_BYTES)
    FlightRecorder(memory)
    entry = read_flight(memory)
    assert (entry.state, entry.counter, entry.last, entry.history) == ("idle", 0, None, ())


def test_enter_and_leave_are_seen_with_everything_that_was_noted() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    before = time.monotonic()
    recorder.enter(recorder.group("tp", (0, 2)), "all_reduce", (4, 5), "torch.bfloat16")
    entry = read_flight(memory)
    assert entry.state == "in"
    assert entry.counter == 1
    last = entry.last
    assert last is not None
    assert (last.group, last.ranks, last.op) == ("tp", (0, 2), "all_reduce")
    assert (last.shape, last.dtype, last.peer, last.seq) == ((4, 5), "bfloat16", None, 1)
    assert before <= last.started <= time.monotonic()
    assert last.describe() == "all_reduce bfloat16 (4, 5) [tp [0, 2] #1]"
    recorder.leave()
    entry = read_flight(memory)
    assert (entry.state, entry.counter) == ("done", 2)


def test_new_call_counts_from_one_again_and_forgets_the_last() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    world = recorder.group("world")
    recorder.enter(world, "barrier")
    recorder.leave()
    recorder.new_call(7)
    entry = read_flight(memory, 7)
    assert (entry.state, entry.last, entry.streams.number(world.key)) == ("idle", None, 0)
    assert recorder.enter(world, "barrier") == 1
    entry = read_flight(memory, 7)
    assert len(entry.history) == entry.streams.number(world.key) == 1


def test_what_a_rank_did_before_it_heard_of_a_call_says_nothing_about_that_call() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    world = recorder.group("world")
    recorder.new_call(7)
    recorder.enter(world, "barrier")
    entry = read_flight(memory, 8)
    assert (entry.state, entry.last, entry.history) == ("idle", None, ())
    assert entry.streams.number(world.key) == 0


def test_sequence_numbers_count_per_group_and_sends_apart() -> None:
    recorder = FlightRecorder.null()
    world, tp, other = (recorder.group(*g) for g in (("world",), ("tp", (0, 1)), ("tp", (2, 3))))
    assert [recorder.enter(world, "barrier") for _ in range(3)] == [1, 2, 3]
    assert recorder.enter(tp, "barrier") == 1
    assert recorder.enter(other, "barrier") == 1
    assert recorder.enter(world, "send", (2,), "float32", peer=1) == 1
    assert recorder.enter(world, "recv", (2,), "float32", peer=1) == 2
    assert recorder.enter(world, "barrier") == 4


def test_old_records_are_overwritten_and_still_counted() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    world, tp, unused = recorder.group("world"), recorder.group("tp", (0, 1)), recorder.group("x")
    recorder.enter(tp, "barrier")
    recorder.leave()
    for _ in range(NUM_RECORDS):
        recorder.enter(world, "barrier")
        recorder.leave()
    entry = read_flight(memory)
    assert len(entry.history) == NUM_RECORDS
    assert [record.seq for record in entry.history] == list(range(1, NUM_RECORDS + 1))
    numbers = [entry.streams.number(group.key) for group in (world, tp, unused)]
    assert numbers == [NUM_RECORDS, 1, 0]


def test_long_names_and_many_ranks_keep_what_matters() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    recorder.enter(recorder.group("é" * 600, tuple(range(100))), "all_reduce", (2,), "float32")
    last = read_flight(memory).last
    assert last is not None
    assert (last.op, last.seq, last.ranks) == ("all_reduce", 1, tuple(range(100)))
    assert len(last.group.encode()) <= MAX_NAME
    assert last.describe().endswith("... [0, 1, 2, 3, 4, 5, 6, ..., 99] #1]")
    recorder.enter(recorder.group("huge", tuple(range(300))), "o" * 900, (7,) * 200, "float32")
    last = read_flight(memory).last
    assert last is not None
    assert (last.group, last.ranks, last.seq) == ("huge", None, 1)


def test_what_was_reduced_and_from_where_is_shown() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    world = recorder.group("world")
    recorder.enter(world, "all_reduce", (4,), "float32", detail="max")
    recorder.enter(
        world, "send_recv", (4,), "float32", peer=1, source=2, incoming=((4,), "float32")
    )
    assert [record.describe() for record in read_flight(memory).history] == [
        "all_reduce(max) float32 (4,) [world #1]",
        "send_recv float32 (4,) to rank 1 and from rank 2 [world #1]",
    ]


def test_small_buffer_is_refused() -> None:
    with pytest.raises(ValueError, match=f"64 bytes; {FLIGHT_BYTES} are needed"):
        FlightRecorder(bytearray(64))


def test_records_read_while_another_process_writes_are_never_torn() -> None:
    memory = mmap.mmap(-1, FLIGHT_BYTES)
    child = os.fork()
    if child == 0:
        recorder = FlightRecorder(memory)
        groups = [recorder.group("group" * length) for length in range(1, 6)]
        for n in itertools.count():
            shape = (n,) * (n % 9)
            recorder.enter(groups[n % 5], f"op{n % 9}", shape, "float32")
            recorder.leave()
    try:
        seen: set[int] = set()
        start = time.monotonic()
        while time.monotonic() < start + 1.5 or len(seen) <= 100:
            assert time.monotonic() < start + 60, f"only {len(seen)} records could be read"
            for record in read_flight(memory).history:
                assert record.op == f"op{len(record.shape)}"
                assert len(set(record.shape)) <= 1
                seen.add(record.seq)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_record_left_half_written_by_a_dead_rank_is_dropped() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    world = recorder.group("world")
    recorder.enter(world, "barrier")
    recorder.leave()
    recorder.enter(world, "all_reduce", (4,), "float32")
    words = memoryview(memory).cast("Q")
    words[8 + 512 // 8] += 1  # the version of the second record: odd means being written
    entry = read_flight(memory)
    assert [record.op for record in entry.history] == ["barrier"]
