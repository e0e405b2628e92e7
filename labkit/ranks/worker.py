"""What a rank does: join the process group, then run one call after another until told to stop."""

from __future__ import annotations

import ctypes
import faulthandler
import linecache
import mmap
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

import numpy
import torch
import torch.distributed as dist

from labkit.ranks.comm import Comm
from labkit.ranks.failure import Failure
from labkit.ranks.flight import FlightRecorder
from labkit.ranks.flight_memory import FLIGHT_BYTES
from labkit.ranks.wire import Channel, Kind, dumps, loads, text_of

# The pool's own deadline ends a call; torch's would only hide what happened behind a later error.
_NO_TIMEOUT = timedelta(days=7)

_kept: dict[int, Any] = {}


def kept(ref: int) -> Any:
    """What this rank kept under number `ref`: how a RankRef arrives here."""
    return _kept[ref]


@dataclass(frozen=True)
class Settings:
    """What the parent decides for one rank."""

    rank: int
    size: int
    backend: str
    device: str
    store: str  # path of the rendezvous file
    threads: int


def main(sock: socket.socket, stack_fd: int, flight_fd: int, settings: dict[str, Any]) -> None:
    """Run one rank. `settings` are those of `Settings`; returns when the parent is gone."""
    faulthandler.register(signal.SIGUSR1, file=stack_fd, all_threads=True, chain=False)
    faulthandler.enable(file=stack_fd, all_threads=True)
    rank = Settings(**settings)
    channel = Channel(sock)
    recorder = FlightRecorder(mmap.mmap(flight_fd, FLIGHT_BYTES))
    report = Reporter(channel)
    try:
        comm = _join(rank, recorder, report)
    except BaseException as error:
        channel.send(Kind.RAISED, dumps(Failure.of("raised", error)))
        raise
    owner = os.getpid()
    os.register_at_fork(after_in_child=recorder.detach)
    channel.send(Kind.READY)
    while (frame := channel.wait()) is not None:
        kind, number, body = frame
        if kind == Kind.FREE:
            _kept.pop(loads(body), None)
            continue
        recorder.new_call(number)
        report.new_call(number)
        answer = _run(comm, kind, body)
        if os.getpid() != owner:
            _end_fork(*answer)
        channel.send(*answer, number)


class Reporter:
    """`Comm.report` on a rank: values go to the call that is under way."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._owner = os.getpid()
        self._number = 0
        self._leftover: set[threading.Thread] = set()

    def new_call(self, number: int) -> None:
        """From now on values belong to call `number`; those of threads running already do not."""
        self._number = number
        self._leftover = set(threading.enumerate()) - {threading.main_thread()}

    def __call__(self, value: Any) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError("report works on the rank itself, not in a process that it forked")
        if threading.current_thread() not in self._leftover:
            self._channel.send(Kind.PROGRESS, dumps(value), self._number)


def _end_fork(kind: int, body: bytes | memoryview) -> NoReturn:
    """End a process that the user's function forked, once the function ends there too.

    The call goes on in the rank, which is the only one to answer.
    """
    code = 0
    if kind == Kind.RAISED:
        failure: Failure = loads(body)
        code = 1
        if failure.kind == "raised":
            os.write(2, failure.traceback.encode(errors="backslashreplace"))
        elif failure.message in ("", "None"):
            code = 0
        elif failure.message.isdigit():
            code = int(failure.message) & 255
    os._exit(code)


def _join(rank: Settings, recorder: FlightRecorder, report: Reporter) -> Comm:
    torch.set_num_threads(rank.threads)
    numpy.random.seed(None)
    if rank.device != "cpu":
        torch.cuda.set_device(torch.device(rank.device))
    dist.set_debug_level_from_env()  # torch was loaded before this rank had its environment
    dist.init_process_group(
        rank.backend,
        store=dist.FileStore(rank.store, rank.size),
        rank=rank.rank,
        world_size=rank.size,
        timeout=_NO_TIMEOUT,
    )
    return Comm.world(rank.device, recorder=recorder, reporter=report, timeout=_NO_TIMEOUT)


def _run(comm: Comm, kind: int, body: bytearray) -> tuple[int, bytes | memoryview]:
    """Run one call; the frame that tells how it went."""
    try:
        sources, path, number, call = loads(body)
        _learn_sources(sources)
        if path is not None:
            sys.path[:] = path
        function, args, kwargs = _unpack(call)
        result = function(comm, *args, **kwargs)
        if kind == Kind.PUT:
            _kept[number] = result
            result = None
        answer = _pack(result)
    except SystemExit as error:
        return Kind.RAISED, dumps(Failure.of("exited", error))
    except BaseException as error:
        return Kind.RAISED, dumps(Failure.of("raised", error))
    finally:
        _flush()
    return Kind.RETURNED, answer


def _unpack(call: bytes) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    try:
        return loads(call)
    except Exception as error:
        raise TypeError(
            f"the function or an argument cannot be rebuilt on the rank: {_line_of(error)}"
        ) from error


def _pack(result: Any) -> bytes | memoryview:
    try:
        return dumps(result)
    except Exception as error:
        raise TypeError(
            f"a result of type {type(result).__name__} cannot be sent back from the rank "
            f"({_line_of(error)}): return plain data, or keep it on the ranks with pool.put"
        ) from None


def _line_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {text_of(error)}"


def _learn_sources(sources: dict[str, list[str]]) -> None:
    """Source of notebook cells, so that tracebacks show their lines."""
    for name, lines in sources.items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def _flush() -> None:
    """Empty Python's and the C library's output buffers."""
    ctypes.CDLL(None).fflush(None)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            os.write(2, b"output could not be flushed\n")
