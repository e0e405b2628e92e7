"""One rank as the parent sees it: its process id, its channel, and the files it writes."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import tempfile
from typing import IO

from labkit.ranks.flight_entry import FlightEntry, Streams, read_flight, read_streams
from labkit.ranks.flight_memory import FLIGHT_BYTES
from labkit.ranks.wire import Channel


class RankProcess:
    """One rank as the parent sees it: its id, its channel, and the files it writes."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.call = 0  # the number of the call that it was sent last
        self.pid: int | None = None
        self.exit_code: int | None = None  # negative: killed by that signal
        self.output = _append_file()
        self.stack = _append_file()
        self.flight_file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.flight_file.truncate(FLIGHT_BYTES)
        self.memory = mmap.mmap(self.flight_file.fileno(), FLIGHT_BYTES)
        ours, self.theirs = socket.socketpair()
        self.channel = Channel(ours)
        self._shown = 0

    def fds(self) -> tuple[int, ...]:
        """What the rank is handed: its channel, output, stack and flight files."""
        files = (self.theirs, self.output, self.stack, self.flight_file)
        return tuple(file.fileno() for file in files)

    def flight(self) -> FlightEntry:
        return read_flight(self.memory, self.call)

    def streams(self) -> Streams:
        return read_streams(self.memory)

    def pending_output(self) -> int:
        """Bytes printed and not shown yet."""
        return os.fstat(self.output.fileno()).st_size - self._shown

    def new_output(self) -> bytes:
        """What the rank printed since this was called last."""
        text = _read(self.output, self._shown)
        self._shown += len(text)
        return text

    def stack_text(self) -> str:
        return _read(self.stack, 0).decode(errors="replace")

    def close(self) -> None:
        for file in (self.theirs, self.channel, self.output, self.stack, self.flight_file):
            file.close()
        with contextlib.suppress(BufferError):
            self.memory.close()


def _append_file() -> IO[bytes]:
    """An unnamed file that several processes may add to without overwriting each other."""
    import fcntl  # not on Windows, where this module must still import

    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    flags = fcntl.fcntl(file.fileno(), fcntl.F_GETFL)
    fcntl.fcntl(file.fileno(), fcntl.F_SETFL, flags | os.O_APPEND)
    return file


def _read(file: IO[bytes], start: int) -> bytes:
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), max(0, size - start), start)
