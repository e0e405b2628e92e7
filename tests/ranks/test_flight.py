"""The flight recorder: what one process writes, another reads, at any moment."""

from __future__ import annotations

import mmap
import os
import signal
import time

import pytest

from labkit.ranks.flight import (
    FLIGHT_BYTES,
    NUM_RECORDS,
    FlightRecorder,
    num_records,
    read_flight,
)


def test_new_recorder_is_idle() -> None:
    memory = bytearray(FLIGHT_BYTES)
    FlightRecorder(memory)
    entry = read_flight(memory)
    assert (entry.state, entry.counter, entry.last, entry.history) == ("idle", 0, None, ())


def test_enter_and_leave_are_seen_with_everything_that_was_noted() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    before = time.monotonic()
    recorder.enter("tp", "all_reduce", (4, 5), "torch.bfloat16", ranks=(0, 2))
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
    recorder.enter("world", "barrier")
    recorder.leave()
    recorder.new_call()
    entry = read_flight(memory)
    assert (entry.state, entry.last, entry.last_seq("world", None)) == ("idle", None, 0)
    assert num_records(memory) == 0
    assert recorder.enter("world", "barrier") == 1
    assert len(read_flight(memory).history) == num_records(memory) == 1


def test_sequence_numbers_count_per_group_and_sends_apart() -> None:
    recorder = FlightRecorder.null()
    assert [recorder.enter("world", "barrier") for _ in range(3)] == [1, 2, 3]
    assert recorder.enter("tp", "barrier", ranks=(0, 1)) == 1
    assert recorder.enter("tp", "barrier", ranks=(2, 3)) == 1
    assert recorder.enter("world", "send", (2,), "float32", peer=1) == 1
    assert recorder.enter("world", "recv", (2,), "float32", peer=1) == 2
    assert recorder.enter("world", "barrier") == 4


def test_old_records_are_overwritten_and_that_is_known() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    recorder.enter("tp", "barrier", ranks=(0, 1))
    recorder.leave()
    assert read_flight(memory).last_seq("world", None) == 0
    for _ in range(NUM_RECORDS):
        recorder.enter("world", "barrier")
        recorder.leave()
    entry = read_flight(memory)
    assert len(entry.history) == NUM_RECORDS
    assert [record.seq for record in entry.history] == list(range(1, NUM_RECORDS + 1))
    assert entry.last_seq("world", None) == NUM_RECORDS
    assert entry.last_seq("tp", (0, 1)) is None
    assert num_records(memory) == NUM_RECORDS + 1


def test_too_long_a_record_keeps_what_fits() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    recorder.enter("g" * 600, "all_reduce", (2,), "float32", ranks=tuple(range(300)))
    last = read_flight(memory).last
    assert last is not None
    assert (last.op, last.seq, last.ranks) == ("all_reduce", 1, None)


def test_small_buffer_is_refused() -> None:
    with pytest.raises(ValueError, match=f"64 bytes; {FLIGHT_BYTES} are needed"):
        FlightRecorder(bytearray(64))


def test_records_read_while_another_process_writes_are_never_torn() -> None:
    memory = mmap.mmap(-1, FLIGHT_BYTES)
    child = os.fork()
    if child == 0:
        recorder = FlightRecorder(memory)
        for n in range(1_000_000):
            shape = (n,) * (n % 9)
            recorder.enter("group" * (1 + n % 5), f"op{n % 9}", shape, "float32")
            recorder.leave()
        os._exit(0)
    try:
        seen = set()
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            for record in read_flight(memory).history:
                assert record.op == f"op{len(record.shape)}"
                assert len(set(record.shape)) <= 1
                seen.add(record.seq)
        assert len(seen) > 100
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_record_left_half_written_by_a_dead_rank_is_dropped() -> None:
    memory = bytearray(FLIGHT_BYTES)
    recorder = FlightRecorder(memory)
    recorder.enter("world", "barrier")
    recorder.leave()
    recorder.enter("world", "all_reduce", (4,), "float32")
    words = memoryview(memory).cast("Q")
    words[8 + 512 // 8] += 1  # the version of the second record: odd means being written
    entry = read_flight(memory)
    assert [record.op for record in entry.history] == ["barrier"]
