"""The rank processes of one start of a pool: forked, wired to the parent, and ended together."""

from __future__ import annotations

import contextlib
import os
import secrets
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
from typing import Any

from labkit.ranks import server as protocol
from labkit.ranks.fork_server import StartError, fork_server, is_closed
from labkit.ranks.rank_process import RankProcess
from labkit.ranks.wire import Kind
from labkit.ranks.worker import Settings

_KILL_SECONDS = 5.0

_alive: weakref.WeakSet[RankSet] = weakref.WeakSet()


@dataclass(frozen=True)
class Frame:
    """A rank said something."""

    rank: int
    kind: int
    call: int  # the number of the call that it belongs to
    body: bytearray


@dataclass(frozen=True)
class Closed:
    """A rank's channel closed: the rank is dying or dead."""

    rank: int


class RankSet:
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
        self.forker = fork_server()
        name = f"labkit-ranks-{secrets.token_hex(8)}"
        self.folder = os.path.join(tempfile.gettempdir(), name)  # made by the server
        self.server = self.forker.open_pool(self.folder)
        self.members: list[RankProcess] = []
        self.num_calls = 0
        self.selector = selectors.DefaultSelector()
        self.owner = os.getpid()
        self.finalizer = weakref.finalize(
            self, _close, self.server, self.members, self.selector, self.folder, self.owner
        )
        _alive.add(self)
        try:
            self.selector.register(self.server, selectors.EVENT_READ)
            for number in range(size):
                self.members.append(RankProcess(number))
                self.selector.register(self.members[-1].channel, selectors.EVENT_READ, number)
            for rank in self.members:
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

    def _fork(self, rank: RankProcess, settings: Settings, environ: dict[str, str]) -> None:
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
        missing = set(range(len(self.members)))
        while missing:
            left = deadline - time.monotonic()
            if left <= 0:
                raise StartError(f"ranks {sorted(missing)} were not ready after {timeout:g} s")
            for event in self.events(left):
                if isinstance(event, Closed) and is_closed(self.server):
                    raise StartError(self.forker.what_went_wrong())
                if isinstance(event, Closed) or event.kind == Kind.RAISED:
                    said = self.members[event.rank].new_output().decode(errors="replace")
                    raise StartError(f"rank {event.rank} could not start:\n{said}")
                missing.discard(event.rank)

    def events(self, timeout: float) -> Iterator[Frame | Closed]:
        """What the ranks said or suffered, waiting at most `timeout` seconds for it."""
        for key, _ in self.selector.select(max(0.0, timeout)):
            rank = self._hear_server() if key.fileobj is self.server else self.members[key.data]
            if rank is None or rank.channel.closed:
                continue
            for kind, call, body in rank.channel.frames():
                yield Frame(rank.rank, kind, call, body)
            if rank.channel.closed or rank.exit_code is not None:
                rank.channel.closed = True
                self.selector.unregister(rank.channel)
                yield Closed(rank.rank)

    def _hear_server(self) -> RankProcess | None:
        """Take in one message of the server; the rank that it says has ended, if any."""
        message, _ = protocol.receive(self.server)
        if message is None:
            self.selector.unregister(self.server)
        elif "refused" in message:
            raise StartError(f"the ranks get no temporary folder: {message['refused']}")
        elif "rank" in message:
            self.members[message["rank"]].pid = message["pid"]
        else:
            for rank in self.members:
                if rank.pid == message["exited"]:
                    rank.exit_code = message["code"]
                    return rank
        return None

    def are_alive(self) -> bool:
        """Whether the server and every rank are there, as far as this process knows by now."""
        for _ in self.events(0):
            pass
        return not is_closed(self.server) and all(
            rank.exit_code is None and not rank.channel.closed for rank in self.members
        )

    def signal(self, rank: RankProcess, number: int) -> None:
        """Send a signal to a rank, through the server, which knows that the id is still its."""
        with contextlib.suppress(OSError):
            protocol.send(self.server, {"do": "signal", "pid": rank.pid, "signal": int(number)})

    def wait_for_exit(self, ranks: Sequence[RankProcess], timeout: float) -> None:
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
        self.ask_to_die()
        self.wait_for_exit([rank for rank in self.members if rank.pid], _KILL_SECONDS)

    def ask_to_die(self) -> None:
        """Have every rank killed, without waiting for it."""
        for rank in self.members:
            self.signal(rank, signal.SIGKILL)

    def close(self) -> None:
        """End the ranks and give back everything they used."""
        self.finalizer()


def _close(
    server: socket.socket,
    ranks: list[RankProcess],
    selector: selectors.BaseSelector,
    folder: str,
    owner: int,
) -> None:
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # also reaches copies in forks of this process
        shutil.rmtree(folder, ignore_errors=True)  # the server does too, unless it was killed
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


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"
