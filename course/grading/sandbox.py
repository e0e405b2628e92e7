"""Commands that run student code, each under a warden of its own (see `course/grading/warden.py`).

This is no protection against malice: student code runs as the user who grades. It keeps accidents
from costing anyone else their marks. Grade strangers' work in a container.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from course.grading.workshop import Workshop

_END_SECONDS = 15.0


class Stopped(Exception):
    """Grading was asked to stop."""


@dataclass(frozen=True)
class Ending:
    """How a command ended.

    why: "exit" (by itself or by a signal of its own doing), "memory", "processes", or "asked".
    code: its exit code, negative for a signal. amount: bytes or processes where that was why.
    """

    why: str
    code: int | None = None
    amount: int = 0

    def sentence(self, memory_limit: int) -> str:
        """What happened, for the student, as it goes on after "it"."""
        if self.why == "exit" and self.code is None:
            return "ended the process that watches over it"
        if self.why == "exit" and self.code is not None and self.code < 0:
            return f"ended its process with signal {-self.code}"
        match self.why:
            case "memory":
                return f"used more than {memory_limit / 1e9:g} GB of memory, which is the limit"
            case "processes":
                return f"had {self.amount} processes at a time, which is too many"
            case "exit":
                return f"ended its process (exit code {self.code})"
        return "was ended"


class Sandbox:
    """One command under a warden. Use it as a context manager: leaving it ends everything.

    command: arguments after the Python interpreter's. folder: an empty one, which it runs in.
    memory: bytes that its whole process tree may have resident. spares_root: memory trouble costs
    the largest process below the command where that is the culprit, not the command. keeps_errors:
    the command's stderr goes to the file `stderr` in `folder`.
    """

    def __init__(
        self,
        workshop: Workshop,
        command: Sequence[str],
        folder: Path,
        memory: int,
        *,
        spares_root: bool = False,
        keeps_errors: bool = False,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        self.workshop = workshop
        self.ending: Ending | None = None
        self.pid: int | None = None
        self.peak = 0
        self.killed: dict[int, Ending] = {}  # by process id, below the command, for their memory
        self._folder = folder
        self._parts = b""
        self._killed_all: Ending | None = None
        self._asked = False
        self._channel, theirs = socket.socketpair()
        work = folder / "work"
        work.mkdir()
        environ = workshop.environment(folder)
        self._log = (folder / "stderr").open("wb")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(workshop.warden), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                cwd=folder,
                env=environ,
                pass_fds=(theirs.fileno(), *pass_fds),
                start_new_session=True,
            )
        settings = {
            "command": [sys.executable, *command],
            "cwd": str(work),
            "environ": environ,
            "memory": memory,
            "spares_root": spares_root,
            "keeps_errors": keeps_errors,
            "pass_fds": pass_fds,
        }
        self._send(settings)

    def poll(self) -> Ending | None:
        """How it ended; None while it runs. Raises Stopped when grading is to stop."""
        self._hear(0.0)
        if self.workshop.stop.is_set():
            raise Stopped
        return self.ending

    def lasts(self, seconds: float) -> bool:
        """Whether it is still there after so many seconds."""
        self._hear(seconds)
        return self.poll() is None

    def interrupt(self) -> None:
        """What Ctrl-C would do."""
        self._send({"do": "interrupt"})

    def end(self) -> Ending:
        """End it and everything it started."""
        self._asked = True
        self._send({"do": "end"})
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        while self.ending is None:
            self._hear(0.1)
        self._channel.close()
        self._log.close()
        return self.ending

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.end()

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._channel.sendall(json.dumps(message).encode() + b"\n")

    def _hear(self, seconds: float) -> None:
        """Take in what the warden says; one that is gone took its command with it."""
        if self.ending is not None or not select.select([self._channel], [], [], seconds)[0]:
            return
        try:
            part = self._channel.recv(65536)
        except OSError:
            part = b""
        if not part:
            self.ending = self._killed_all or Ending("asked" if self._asked else "exit")
            self.workshop.sweep(self._folder)  # the warden was killed: some may have got away
            return
        *lines, self._parts = (self._parts + part).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        match message["is"]:
            case "started":
                self.pid = message["pid"]
            case "killed":
                amount = message.get("bytes", message.get("number", 0))
                ending = Ending(message["why"], amount=amount)
                if message["all"]:
                    self._killed_all = ending
                else:
                    self.killed[message["pid"]] = ending
            case "ended":
                self.peak = message["peak"]
                by_itself = Ending("asked" if self._asked else "exit", message["code"])
                self.ending = self._killed_all or by_itself
