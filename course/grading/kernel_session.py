"""A submission's kernel from outside: one cell at a time, with a deadline and a memory limit.

Only the kernel's replies are read. What cells print goes nowhere, so a flood of it costs nothing.
"""

from __future__ import annotations

import queue
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

from course.grading.handover import Order, Taken, from_json
from course.grading.sandbox import Sandbox
from course.grading.workshop import Workshop

START_SECONDS = 90.0
INTERRUPT_SECONDS = 3.0
_POLL_SECONDS = 0.2
_AFTERMATH_SECONDS = 0.05  # so that a death that a cell brought about is not the next one's
_MOST_REPLY_BYTES = 16 << 20
_MOST_TAKEN_BYTES = 512 << 20
_LONGEST_SOCKET_PATH = 90
_MOST_ERROR = 200


class KernelStartError(RuntimeError):
    """The kernel did not come up; the submission is not to blame."""


@dataclass(frozen=True)
class CellEnd:
    """How a cell ended. trouble: as it goes on after "code cell 3", "" when all went well.

    is_lost: the kernel is gone, or no longer usable. is_death: because it ended while the cell ran,
    maybe through the cell. had_begun: False when it had ended before.
    """

    trouble: str = ""
    is_lost: bool = False
    is_death: bool = False
    had_begun: bool = True


class KernelSession:
    """A fresh kernel under a warden. Use it as a context manager.

    memory: bytes that it and all it starts may have resident. modules: files to put into the folder
    it runs in, by name.
    """

    def __init__(self, workshop: Workshop, memory: int, modules: Mapping[str, bytes]) -> None:
        self._memory = memory
        self._workshop = workshop
        self._folder = workshop.new_folder()
        connection = self._folder / "connection.json"
        info = _write_connection(connection, self._folder / "k")
        command = ["-P", "-m", "course.grading.collecting_kernel", "-f", str(connection)]
        self._sandbox = Sandbox(workshop, command, self._folder, memory)
        self._context = zmq.Context()
        self._context.setsockopt(zmq.MAXMSGSIZE, _MOST_REPLY_BYTES)
        self._client = BlockingKernelClient(context=self._context)
        self._client.load_connection_info(info)
        self._client.start_channels(iopub=False, stdin=False, hb=False)
        try:
            for name, content in modules.items():
                (self._folder / "work" / name).write_bytes(content)
            self._wait_for_start()
        except BaseException:
            self.close()
            raise

    @property
    def peak(self) -> int:
        """The most bytes its process tree had resident; known once it has ended."""
        return self._sandbox.peak

    def run(self, code: str, seconds: float) -> CellEnd:
        """Run one cell. One that takes longer is interrupted, and lost if that does not help."""
        if self._sandbox.poll() is not None:
            return CellEnd(self._how_it_ended(), is_lost=True, had_begun=False)
        request = self._client.execute(code, allow_stdin=False, stop_on_error=False)
        reply = self._reply(request, seconds)
        if reply is not None and self._sandbox.lasts(_AFTERMATH_SECONDS):
            return self._cell_end(reply)
        if self._sandbox.ending is not None:
            return CellEnd(self._how_it_ended(), is_lost=True, is_death=True)
        self._sandbox.interrupt()
        reply = self._reply(request, INTERRUPT_SECONDS)
        told = f"ran longer than {seconds:g} s and was stopped"
        if reply is not None:
            return CellEnd(told)
        if self._sandbox.ending is None:
            return CellEnd(f"{told}; it did not heed the interrupt", is_lost=True)
        return CellEnd(self._how_it_ended(), is_lost=True)

    def wait(self, seconds: float) -> CellEnd:
        """Run nothing for so long; a kernel that ends meanwhile is ended by what ran before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self._sandbox.lasts(max(0.0, min(_POLL_SECONDS, deadline - time.monotonic()))):
                return CellEnd(self._how_it_ended(), is_lost=True, had_begun=False)
        return CellEnd()

    def take(self, names: Sequence[str], seconds: float, *, only_new: bool) -> dict[str, Taken]:
        """The functions with these names, as last checked, or else as they are now.

        only_new: those checked or defined since last time. Empty where the kernel cannot do it.
        """
        file = self._folder / f"taken-{secrets.token_hex(4)}"
        end = self.run(Order(tuple(names), str(file), only_new).as_code(), seconds)
        try:
            if end.trouble or not file.is_file() or file.stat().st_size > _MOST_TAKEN_BYTES:
                return {}
            found = from_json(file.read_bytes())
            file.unlink()
            return {name: found[name] for name in names if name in found}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def close(self) -> None:
        """End the kernel and all that it started; its folder goes too."""
        self._client.stop_channels()
        self._context.destroy(linger=0)
        self._sandbox.end()
        self._workshop.remove_folder(self._folder)

    def __enter__(self) -> KernelSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _how_it_ended(self) -> str:
        assert self._sandbox.ending is not None
        return self._sandbox.ending.sentence(self._memory)

    def _wait_for_start(self) -> None:
        if self._reply(self._client.kernel_info(), START_SECONDS) is not None:
            return
        ending = self._sandbox.ending
        what = ending.sentence(self._memory) if ending else f"did not answer in {START_SECONDS:g} s"
        raise KernelStartError(f"the kernel {what} before the first cell")

    def _reply(self, request: str, seconds: float) -> dict[str, Any] | None:
        """The reply to a request; None when it does not come in time or the kernel has ended."""
        deadline = time.monotonic() + seconds
        while self._sandbox.poll() is None and time.monotonic() < deadline:
            left = max(0.0, min(_POLL_SECONDS, deadline - time.monotonic()))
            try:
                message = self._client.shell_channel.get_msg(timeout=left)
            except queue.Empty:
                continue
            except Exception:  # not a message of the protocol
                continue
            if message["parent_header"].get("msg_id") == request:
                content: dict[str, Any] = message["content"]
                return content
        return None

    def _cell_end(self, reply: dict[str, Any]) -> CellEnd:
        sources = [part.get("source") for part in reply.get("payload") or []]
        if "ask_exit" in sources:
            return CellEnd("asked the kernel to exit", is_lost=True)
        if reply.get("status") == "ok":
            return CellEnd()
        name, text = str(reply.get("ename", "an error")), str(reply.get("evalue", "")).strip()
        if name == "StdinNotImplementedError":
            return CellEnd("asks for input, which nobody gives while it is graded")
        first = text.splitlines()[0][:_MOST_ERROR] if text else ""
        return CellEnd(f"raised {name}{': ' if first else ''}{first}")


def _write_connection(file: Path, socket_name: Path) -> Any:
    """Sockets in the file system, which need no port; ports where the path is too long for that."""
    fits = len(str(socket_name)) < _LONGEST_SOCKET_PATH
    _, info = write_connection_file(
        str(file),
        key=secrets.token_hex(16).encode(),
        transport="ipc" if fits else "tcp",
        ip=str(socket_name) if fits else "127.0.0.1",
    )
    return info
