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
import time
import traceback
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal

import numpy
import torch
import torch.distributed as dist

from labkit.ranks.comm import Comm
from labkit.ranks.flight import FLIGHT_BYTES, FlightRecorder
from labkit.ranks.stack import user_frames
from labkit.ranks.wire import Channel, Kind, dumps, loads

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


@dataclass(frozen=True)
class Failure:
    """How a call failed on one rank, in plain data that any process can unpickle."""

    kind: Literal["raised", "exited"]  # exited: sys.exit
    type_name: str
    message: str
    traceback: str  # "" when none of the frames is the user's
    stack: str  # where in the user's code
    moment: float  # time.monotonic()
    exception: bytes | None  # pickled, if it can be


def main(sock: socket.socket, stack_fd: int, flight_fd: int, settings: dict[str, Any]) -> None:
    """Run one rank. `settings` are those of `Settings`; returns when the parent is gone."""
    faulthandler.register(signal.SIGUSR1, file=stack_fd, all_threads=True, chain=False)
    faulthandler.enable(file=stack_fd, all_threads=True)
    rank = Settings(**settings)
    channel = Channel(sock)
    recorder = FlightRecorder(mmap.mmap(flight_fd, FLIGHT_BYTES))
    try:
        comm = _join(rank, channel, recorder)
    except BaseException as error:
        channel.send(Kind.RAISED, dumps(_failure("raised", error)))
        raise
    channel.send(Kind.READY)
    while (frame := channel.wait()) is not None:
        kind, body = frame
        if kind == Kind.FREE:
            _kept.pop(loads(body), None)
        else:
            recorder.new_call()
            channel.send(*_run(comm, kind, body))


def _join(rank: Settings, channel: Channel, recorder: FlightRecorder) -> Comm:
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

    def report(value: Any) -> None:
        channel.send(Kind.PROGRESS, dumps(value))

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
        return Kind.RAISED, dumps(_failure("exited", error))
    except BaseException as error:
        return Kind.RAISED, dumps(_failure("raised", error))
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
    return f"{type(error).__name__}: {_text_of(error)}"


def _learn_sources(sources: dict[str, list[str]]) -> None:
    """Source of notebook cells, so that tracebacks show their lines."""
    for name, lines in sources.items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def _failure(kind: Literal["raised", "exited"], error: BaseException) -> Failure:
    tb = _trim(error.__traceback__)
    text = "".join(traceback.format_exception(type(error), error, tb)) if tb else ""
    places = [(f.filename, f.lineno or 0, f.name) for f in traceback.extract_tb(tb)]
    try:
        pickled = bytes(dumps(error.with_traceback(None)))
    except BaseException:
        pickled = None
    message = _text_of(error)
    return Failure(
        kind=kind,
        type_name=type(error).__name__,
        message=message,
        traceback=text,
        stack=user_frames(places),
        moment=time.monotonic(),
        exception=pickled,
    )


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "<its message cannot be printed>"


def _trim(tb: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame outside this module on."""
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    return tb


def _flush() -> None:
    """Empty Python's and the C library's output buffers."""
    ctypes.CDLL(None).fflush(None)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            os.write(2, b"output could not be flushed\n")
