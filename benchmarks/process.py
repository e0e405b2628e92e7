"""The benchmark's end of one side: starts its process, asks, waits no longer than a deadline."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from benchmarks.protocol import Answer, Request, decode_answer, encode

REPOSITORY = Path(__file__).resolve().parents[1]

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONUNBUFFERED": "1",
}
"""Threads waiting for work must sleep: the processes of the other sides wait on the same cores."""


class SideFailed(RuntimeError):
    """A side raised, died, or missed its deadline; the sentence says which and quotes it."""


class SideProcess:
    """One side's process, idle between questions."""

    def __init__(self, name: str, module: str, *arguments: str, torchrun_ranks: int = 0) -> None:
        self.name = name
        launcher = ["-m", "torch.distributed.run", "--standalone"]
        launcher += ["--nproc-per-node", str(torchrun_ranks), "--module"]
        command = [sys.executable, *(launcher if torchrun_ranks else ["-m"]), module, *arguments]
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=REPOSITORY,
            env=os.environ | ONE_THREAD,
            start_new_session=True,
        )
        self._answers: queue.Queue[Answer | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait_until_ready(self, deadline: float) -> None:
        """Until imports are done: they would disturb the side whose turn it is."""
        self._next_answer(deadline)

    def ask(self, request: Request, deadline: float) -> Answer:
        """The side's answer within `deadline` seconds, else SideFailed (and the process ends)."""
        if deadline <= 0:
            raise SideFailed(f"{self.name} was not asked: no time was left")
        stdin = self._process.stdin
        assert stdin is not None
        if stdin.closed:
            raise SideFailed(f"{self.name} was ended before")
        with contextlib.suppress(OSError):
            stdin.write(encode(request) + "\n")
            stdin.flush()
        return self._next_answer(deadline)

    def _next_answer(self, deadline: float) -> Answer:
        try:
            answer = self._answers.get(timeout=max(deadline, 0.0))
        except queue.Empty:
            self.close(patience=0.0)
            raise SideFailed(f"{self.name} gave no answer within {deadline:.0f} s") from None
        if answer is None:
            self.close()
            raise SideFailed(
                f"{self.name} ended with exit code {self._process.returncode}: {self._last_words()}"
            )
        if answer.error:
            raise SideFailed(f"{self.name} raised: {answer.error.strip().splitlines()[-1]}")
        return answer

    def dismiss(self) -> None:
        """Tell the process that no request will follow, without waiting for it to end."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError):
            stdin.close()

    def close(self, patience: float = 3.0) -> None:
        """End the process and every rank it started, by force after `patience` seconds.

        Safe to call twice.
        """
        self.dismiss()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=patience)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = decode_answer(line)
            if answer is not None:
                self._answers.put(answer)
        self._answers.put(None)

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = [line for line in self._errors.read().splitlines() if line.strip()]
        return " | ".join(lines[-3:]).replace(f"{REPOSITORY}{os.sep}", "")
