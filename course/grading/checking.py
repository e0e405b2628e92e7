"""Exercises judged in a process of their own, seen from the grader."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import select
import socket
import time
from dataclasses import dataclass
from typing import Any

from course.grading.exercise import Exercise
from course.grading.judge import Verdict
from course.grading.sandbox import Ending, Sandbox
from course.grading.workshop import Workshop

_START_SECONDS = 60.0
_SECONDS_A_CASE = 10.0  # for starting ranks, on top of the case's own time
_MOST_REPLY_BYTES = 64 << 20


@dataclass(frozen=True)
class Judged:
    """Verdicts, or why there are none: `trouble`, a sentence; `is_ours` when the grader failed."""

    verdicts: tuple[Verdict, ...] = ()
    trouble: str = ""
    is_ours: bool = False


class Checker:
    """Judges one notebook's functions, in a process that is started anew after trouble."""

    def __init__(self, workshop: Workshop, memory: int, *, hidden: bool, seed: int) -> None:
        self._workshop = workshop
        self._memory = memory
        self._hidden = hidden
        self._seed = seed
        self._sandbox: Sandbox | None = None
        self._channel: socket.socket | None = None
        self.peak = 0

    def judge(self, exercise: Exercise, packed: bytes) -> Judged:
        """The verdicts on a packed function; every way in which that fails is told."""
        sandbox, channel = self._started()
        request = {
            "exercise": exercise.name,
            "packed": base64.b64encode(packed).decode(),
            "hidden": self._hidden,
            "seed": self._seed,
        }
        killed_before = len(sandbox.killed)
        seconds = self._seconds(exercise)
        try:
            line = _ask(sandbox, channel, json.dumps(request).encode() + b"\n", seconds)
        except TimeoutError:
            self.close()
            return Judged(trouble=f"the checks took longer than {seconds:g} s and were stopped")
        if line is None:
            ending = sandbox.end()
            self.close()
            own = f"while your function ran, the process that checks it {self._told(ending)}"
            return Judged(trouble=own)
        reply = json.loads(line)
        if "failed" in reply:
            self.close()
            return Judged(trouble=f"the check itself failed: {reply['failed']}", is_ours=True)
        verdicts = tuple(Verdict(**entry) for entry in reply["verdicts"])
        return Judged(tuple(_with_memory(verdicts, sandbox.killed[killed_before:], self._memory)))

    def close(self) -> None:
        """End the process and its ranks; the next `judge` starts a new one."""
        if self._sandbox is not None:
            self._sandbox.end()
            self.peak = max(self.peak, self._sandbox.peak)
        if self._channel is not None:
            self._channel.close()
        self._sandbox = self._channel = None

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> tuple[Sandbox, socket.socket]:
        if self._sandbox is None or self._channel is None:
            self._channel, theirs = socket.socketpair()
            with theirs:
                command = ["-P", "-m", "course.grading.checker", str(theirs.fileno())]
                self._sandbox = Sandbox(
                    self._workshop,
                    command,
                    self._workshop.new_folder(),
                    self._memory,
                    spares_root=True,
                    keeps_errors=True,
                    pass_fds=(theirs.fileno(),),
                )
        return self._sandbox, self._channel

    def _seconds(self, exercise: Exercise) -> float:
        """What judging may take in all; each case has its own deadline besides."""
        cases = [*exercise.visible(0), *(exercise.hidden(self._seed) if self._hidden else ())]
        return _START_SECONDS + len(cases) * (exercise.timeout + _SECONDS_A_CASE)

    def _told(self, ending: Ending) -> str:
        return ending.sentence(self._memory)


def _ask(sandbox: Sandbox, channel: socket.socket, request: bytes, seconds: float) -> bytes | None:
    """The reply line; None when the checker has ended. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    channel.setblocking(False)
    to_send, reply = memoryview(request), bytearray()
    while not reply.endswith(b"\n"):
        if time.monotonic() > deadline:
            raise TimeoutError
        writable = [channel] if to_send else []
        can_read, can_write, _ = select.select([channel], writable, [], 0.2)
        try:
            if can_write:
                to_send = to_send[channel.send(to_send) :]
            part = channel.recv(1 << 20) if can_read else b"-"
        except BlockingIOError:
            continue
        except OSError:
            part = b""
        if part == b"" or len(reply) > _MOST_REPLY_BYTES:
            return None
        if can_read:
            reply += part
        if sandbox.poll() is not None and not can_read:
            return None
    return bytes(reply)


def _with_memory(verdicts: tuple[Verdict, ...], killed: list[Ending], memory: int) -> list[Any]:
    """Verdicts in which a rank that died because of its memory says so."""
    endings = iter(killed)
    told: list[Verdict] = []
    for verdict in verdicts:
        if verdict.key == "died" and "SIGKILL" in verdict.message:
            with contextlib.suppress(StopIteration):
                text = f"the function {next(endings).sentence(memory)}"
                verdict = dataclasses.replace(verdict, message=text)
        told.append(verdict)
    return told
