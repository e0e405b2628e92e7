"""The rank processes of one start of a pool: forked, wired to the parent, and ended together."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

from labkit.ranks import server as protocol
from labkit.ranks.flight import FLIGHT_BYTES, FlightEntry, num_records, read_flight
from labkit.ranks.fork_server import StartError, fork_server
from labkit.ranks.wire import Channel, Kind
from labkit.ranks.worker import Settings

_KILL_SECONDS = 5.0

_alive: weakref.WeakSet[Ranks] = weakref.WeakSet()


@dataclass(frozen=True)
class Frame:
    """A rank said something."""

    rank: int
    kind: int
    body: bytearray


@dataclass(frozen=True)
class Closed:
    """A rank's channel closed: the rank is dying or dead."""

    rank: int


class Rank:
    """One rank as the parent sees it: its id, its channel, and the files it writes."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
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
        return read_flight(self.memory)

    def num_records(self) -> int:
        return num_records(self.memory)

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


class Ranks:
    """`size` ranks in one process group, from the moment they are all ready until `close`."""

    def __init__(
        self,
        size: int,
        *,
        backend: str,
        devices: Sequence[str],
        threads: int,
        environ: dict[str, str],
        timeout: float,
    ) -> None:
        self.folder = tempfile.mkdtemp(prefix="labkit-ranks-")
        try:
            self.forker = fork_server()
            self.server = self.forker.open_pool(self.folder)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.ranks: list[Rank] = []
        self.selector = selectors.DefaultSelector()
        self.owner = os.getpid()
        self.finalizer = weakref.finalize(
            self, _close, self.server, self.ranks, self.selector, self.owner
        )
        _alive.add(self)
        try:
            self.selector.register(self.server, selectors.EVENT_READ)
            for number in range(size):
                self.ranks.append(Rank(number))
                self.selector.register(self.ranks[-1].channel, selectors.EVENT_READ, number)
            for rank in self.ranks:
                settings = Settings(
                    rank=rank.rank,
                    size=size,
                    backend=backend,
                    device=devices[rank.rank],
                    store=os.path.join(self.folder, "rendezvous"),
                    threads=threads,
                )
                self._fork(rank, settings, environ)
            self._wait_until_ready(timeout)
        except BaseException:
            self.close()
            raise

    def _fork(self, rank: Rank, settings: Settings, environ: dict[str, str]) -> None:
        message = {
            "do": "fork",
            "rank": rank.rank,
            "module": "labkit.ranks.worker",
            "settings": asdict(settings),
            "environ": environ,
            "cwd": _working_directory(),
            "sys_path": list(sys.path),
            "argv": list(sys.argv),
        }
        try:
            protocol.send(self.server, message, rank.fds())
        except OSError:
            raise StartError(self.forker.what_went_wrong()) from None
        rank.theirs.close()
        rank.flight_file.close()

    def _wait_until_ready(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        missing = set(range(len(self.ranks)))
        while missing:
            left = deadline - time.monotonic()
            if left <= 0:
                raise StartError(f"ranks {sorted(missing)} were not ready after {timeout:g} s")
            for event in self.events(left):
                if isinstance(event, Closed) and not self.forker.is_alive():
                    raise StartError(self.forker.what_went_wrong())
                if isinstance(event, Closed) or event.kind == Kind.RAISED:
                    said = self.ranks[event.rank].new_output().decode(errors="replace")
                    raise StartError(f"rank {event.rank} could not start:\n{said}")
                missing.discard(event.rank)

    def events(self, timeout: float) -> Iterator[Frame | Closed]:
        """What the ranks said or suffered, waiting at most `timeout` seconds for it."""
        for key, _ in self.selector.select(max(0.0, timeout)):
            if key.fileobj is self.server:
                self._hear_server()
            else:
                rank = self.ranks[key.data]
                for kind, body in rank.channel.frames():
                    yield Frame(rank.rank, kind, body)
                if rank.channel.closed:
                    self.selector.unregister(rank.channel)
                    yield Closed(rank.rank)

    def _hear_server(self) -> None:
        message, _ = protocol.receive(self.server)
        if message is None:
            self.selector.unregister(self.server)
        elif "rank" in message:
            self.ranks[message["rank"]].pid = message["pid"]
        else:
            for rank in self.ranks:
                if rank.pid == message["exited"]:
                    rank.exit_code = message["code"]

    def are_alive(self) -> bool:
        """Whether every rank was alive when the server last said something."""
        for _ in self.events(0):
            pass
        return all(rank.exit_code is None and not rank.channel.closed for rank in self.ranks)

    def signal(self, rank: Rank, number: int) -> None:
        """Send a signal to a rank, through the server, which knows that the id is still its."""
        with contextlib.suppress(OSError):
            protocol.send(self.server, {"do": "signal", "pid": rank.pid, "signal": int(number)})

    def wait_for_exit(self, ranks: Sequence[Rank], timeout: float) -> None:
        """Wait until the server has told how each of `ranks` ended."""
        deadline = time.monotonic() + timeout
        while any(rank.exit_code is None for rank in ranks):
            left = deadline - time.monotonic()
            if left <= 0 or self.server not in self._registered():
                return
            for _ in self.events(left):
                pass

    def _registered(self) -> set[Any]:
        return {key.fileobj for key in self.selector.get_map().values()}

    def kill(self) -> None:
        """Kill every rank now; returns when they are dead."""
        for rank in self.ranks:
            self.signal(rank, signal.SIGKILL)
        self.wait_for_exit([rank for rank in self.ranks if rank.pid], _KILL_SECONDS)

    def close(self) -> None:
        """End the ranks and give back everything they used."""
        self.finalizer()


def _close(
    server: socket.socket, ranks: list[Rank], selector: selectors.BaseSelector, owner: int
) -> None:
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # also reaches copies in forks of this process
    server.close()
    selector.close()
    for rank in ranks:
        rank.close()


def _forget_all() -> None:
    """In a fork of this process: the ranks belong to the original."""
    for ranks in list(_alive):
        ranks.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _append_file() -> IO[bytes]:
    """An unnamed file that several processes may add to without overwriting each other."""
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    flags = fcntl.fcntl(file.fileno(), fcntl.F_GETFL)
    fcntl.fcntl(file.fileno(), fcntl.F_SETFL, flags | os.O_APPEND)
    return file


def _read(file: IO[bytes], start: int) -> bytes:
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), max(0, size - start), start)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"
