"""Exercises judged in a process of their own, seen from the grader."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course.grading.exercise import Exercise
from course.grading.judge import BUDGET, Verdict
from course.grading.sandbox import Ending, Sandbox
from course.grading.workshop import Workshop

_START_SECONDS = 60.0
_SECONDS_A_CASE = 10.0  # for starting ranks, on top of what the calls take
_MOST_REPLY_BYTES = 64 << 20


@dataclass(frozen=True)
class Judged:
    """Verdicts, or why there are none.

    trouble: a sentence. is_ours: the grader failed. ran_out: the `limit` was reached.
    """

    verdicts: tuple[Verdict, ...] = ()
    trouble: str = ""
    is_ours: bool = False
    ran_out: bool = False


class Checker:
    """Judges one notebook's functions, in a process that is started anew after trouble."""

    def __init__(self, workshop: Workshop, memory: int, *, hidden: bool, seed: int) -> None:
        self._workshop = workshop
        self._memory = memory
        self._hidden = hidden
        self._seed = seed
        self._sandbox: Sandbox | None = None
        self._folder: Path | None = None
        self._channel: socket.socket | None = None
        self.peak = 0

    def judge(self, exercise: Exercise, packed: bytes, limit: float = math.inf) -> Judged:
        """The verdicts on a packed function; every way in which that fails is told.

        limit: seconds that it may take, if that is less than its cases may. Where the grader itself
        failed, as ranks do that do not start in time on a busy machine, it tries once more.
        """
        end = time.monotonic() + limit
        judged = self._judge(exercise, packed, limit)
        if judged.is_ours and time.monotonic() < end:
            judged = self._judge(exercise, packed, end - time.monotonic())
        return judged

    def _judge(self, exercise: Exercise, packed: bytes, limit: float) -> Judged:
        sandbox, channel = self._started()
        request = {
            "exercise": exercise.name,
            "packed": base64.b64encode(packed).decode(),
            "hidden": self._hidden,
            "seed": self._seed,
        }
        seconds = min(limit, self._seconds(exercise))
        try:
            line = _ask(sandbox, channel, json.dumps(request).encode() + b"\n", seconds)
        except TimeoutError:
            self.close()
            told = f"the checks took longer than {seconds:.0f} s and were stopped"
            return Judged(trouble=told, ran_out=seconds == limit)
        if line is None:
            ending = sandbox.end()
            self.close()
            how = ending.sentence(self._memory)
            return Judged(trouble=f"while your function ran, the process that checks it {how}")
        reply = json.loads(line)
        if "failed" in reply:
            self.close()
            return Judged(trouble=f"the check itself failed: {reply['failed']}", is_ours=True)
        verdicts = tuple(Verdict(**entry) for entry in reply["verdicts"])
        sandbox.poll()  # the warden tells of a kill before it kills
        return Judged(_with_memory(verdicts, sandbox.killed, self._memory))

    def close(self) -> None:
        """End the process and its ranks; the next `judge` starts a new one."""
        if self._sandbox is not None:
            self._sandbox.end()
            self.peak = max(self.peak, self._sandbox.peak)
        if self._channel is not None:
            self._channel.close()
        if self._folder is not None:
            self._workshop.remove_folder(self._folder)
        self._sandbox = self._channel = self._folder = None

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> tuple[Sandbox, socket.socket]:
        if self._sandbox is None or self._channel is None:
            self._channel, theirs = socket.socketpair()
            with theirs:
                self._folder = self._workshop.new_folder()
                command = ["-P", "-m", "course.grading.checker", str(theirs.fileno())]
                self._sandbox = Sandbox(
                    self._workshop,
                    command,
                    self._folder,
                    self._memory,
                    spares_root=True,
                    keeps_errors=True,
                    pass_fds=(theirs.fileno(),),
                )
        return self._sandbox, self._channel

    def _seconds(self, exercise: Exercise) -> float:
        """What judging may take in all; the calls have their own limits besides."""
        cases = [*exercise.visible(0), *(exercise.hidden(self._seed) if self._hidden else ())]
        calls = (BUDGET + 1) * exercise.timeout
        return _START_SECONDS + calls + len(cases) * _SECONDS_A_CASE


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


def _with_memory(
    verdicts: Sequence[Verdict], killed: Mapping[int, Ending], memory: int
) -> tuple[Verdict, ...]:
    """Verdicts in which a rank that was killed for its memory says so."""
    told: list[Verdict] = []
    for verdict in verdicts:
        if verdict.pid is not None and (ending := killed.get(verdict.pid)) is not None:
            text = f"the function {ending.sentence(memory)}"
            verdict = dataclasses.replace(verdict, key="died", message=text)
        told.append(dataclasses.replace(verdict, pid=None))
    return tuple(told)
