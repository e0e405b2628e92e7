"""Real Jupyter kernels for tests: run cells, interrupt them, kill the kernel."""

from __future__ import annotations

import os
import queue
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class CellOutput:
    """What a cell put out: its streams, in order, and its error."""

    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    result: str | None = None
    error: str | None = None  # "RankError"
    message: str = ""
    traceback: str = ""

    @property
    def text(self) -> str:
        return "".join(self.stdout)


class Kernel:
    """One ipykernel process."""

    def __init__(self) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(env=dict(os.environ, OMP_NUM_THREADS="1"))
        self.client: BlockingKernelClient = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def start(self, cell: str) -> str:
        """Start a cell and return at once; pass what this returns to `finish`."""
        return self.client.execute(cell)

    def finish(
        self, cell_id: str, timeout: float = 60.0, interrupt_at: str | None = None
    ) -> CellOutput:
        """Wait for a cell; press the stop button once it has printed `interrupt_at`."""
        output = CellOutput()
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            try:
                message = self.client.get_iopub_msg(timeout=max(0.1, left))
            except queue.Empty:
                raise TimeoutError(f"the cell ran longer than {timeout:g} s: {output}") from None
            if message["parent_header"].get("msg_id") != cell_id:
                continue
            content = message["content"]
            match message["msg_type"]:
                case "stream":
                    getattr(output, content["name"]).append(content["text"])
                    if interrupt_at is not None and interrupt_at in output.text:
                        self.manager.interrupt_kernel()
                        interrupt_at = None
                case "execute_result":
                    output.result = content["data"]["text/plain"]
                case "error":
                    output.error, output.message = content["ename"], content["evalue"]
                    output.traceback = _COLOURS.sub("", "\n".join(content["traceback"]))
                case "status" if content["execution_state"] == "idle":
                    return output

    def run(self, cell: str, timeout: float = 60.0) -> CellOutput:
        return self.finish(self.start(cell), timeout)

    def pid(self) -> int:
        return int(self.run("import os; os.getpid()").result or 0)

    def kill(self, pid: int) -> None:
        """SIGKILL to the kernel process alone (its `pid()`), as when memory runs out."""
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether `condition` came true within so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def is_alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # the second: it ends while it is read
        if os.path.isdir("/proc/self"):
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
