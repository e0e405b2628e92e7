"""The parent's handle on the fork server: one per process, shared by all pools."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

from labkit.ranks import server as protocol

_STOP_SECONDS = 5.0


class StartError(RuntimeError):
    """The fork server or a rank could not be started."""


class ForkServer:
    """The parent's handle on the fork server process (see `labkit/ranks/server.py`)."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.main, theirs = socket.socketpair()
        more_path = json.dumps([entry for entry in sys.path if entry])
        environ = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        environ.update(OMP_WAIT_POLICY="passive", OBJC_DISABLE_INITIALIZE_FORK_SAFETY="YES")
        with theirs:
            arguments = [str(theirs.fileno()), str(os.getpid()), more_path]
            self.process = subprocess.Popen(
                [sys.executable, "-P", protocol.__file__, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
                env=environ,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def open_pool(self, folder: str) -> socket.socket:
        """A channel for one pool; the server makes `folder`, and removes it when that closes."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                protocol.send(self.main, {"folder": folder}, (theirs.fileno(),))
            except OSError:
                ours.close()
                raise StartError(self.what_went_wrong()) from None
        return ours

    def is_alive(self) -> bool:
        return self.process.poll() is None and not is_closed(self.main)

    def what_went_wrong(self) -> str:
        """What a server that is ending said; waits for its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_SECONDS)
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip()
        code = self.process.poll()
        return f"the process that starts ranks ended by itself (exit code {code}):\n{said}"

    def forget(self) -> None:
        """Close this process's copies of what belongs to the server, without ending it."""
        self.main.close()
        self.errors.close()

    def stop(self) -> None:
        self.main.close()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()


def is_closed(channel: socket.socket) -> bool:
    """Whether the other side of a channel is gone, without reading or waiting."""
    try:
        return channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


_server: ForkServer | None = None
_server_lock = threading.Lock()


def fork_server() -> ForkServer:
    """This process's fork server, started when there is none (anew when it was killed)."""
    global _server
    with _server_lock:
        if _server is not None and not _server.is_alive():
            _server.stop()
            _server = None
        if _server is None:
            _server = ForkServer()
        return _server


@atexit.register
def _stop_server() -> None:
    global _server
    if _server is not None:
        _server.stop()
        _server = None


def _forget_server() -> None:
    """In a fork of this process: the server belongs to the original."""
    global _server, _server_lock
    _server_lock = threading.Lock()
    if _server is not None:
        _server.forget()
        _server.process.returncode = 0
        _server = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_server)
