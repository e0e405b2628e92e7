"""The fork server: a small process that has torch loaded and forks a rank whenever it is asked to.

It runs as a plain script in a process of its own, started once per parent process, so that a rank
never inherits the parent's threads, CUDA state or open files. It imports torch and numpy and no
module of this project: a rank imports those itself, so edited code is never stale.

Lifelines are Unix sockets whose closing means "the other side is gone":

    parent --- main channel --- server   one; hands over a new channel for each pool
    pool   --- pool channel --- server   fork, signal; the server reports pids and exits on it
    pool   --- rank channel --- rank     calls and results; the server never reads these

When a pool channel closes, every rank of that pool is killed with whatever it started itself, and
the pool's temporary folder is removed, which the server also made. When the main channel closes or
the parent is gone, all pools end and so does the server. A message is a 4-byte length and a pickled
dict; file descriptors travel beside the length.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import pickle
import selectors
import shutil
import signal
import socket
import struct
import sys
import traceback
from typing import Any, NoReturn

LENGTH = struct.Struct("<I")
MAX_FDS = 8
PARENT_CHECK_SECONDS = 0.5
PRELOAD = ("torch", "numpy", "torch.distributed")


def send(channel: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send one message, and with it copies of `fds`."""
    body = pickle.dumps(message)
    header = LENGTH.pack(len(body))
    if fds:
        socket.send_fds(channel, [header], fds)
        channel.sendall(body)
    else:
        channel.sendall(header + body)


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and its file descriptors; None once the other side is gone."""
    try:
        header, fds, _, _ = socket.recv_fds(channel, LENGTH.size, MAX_FDS)
        if len(header) < LENGTH.size:
            return None, fds
        body = bytearray()
        (size,) = LENGTH.unpack(header)
        while len(body) < size:
            part = channel.recv(size - len(body))
            if not part:
                return None, fds
            body += part
    except ConnectionError:
        return None, []
    return pickle.loads(body), fds


class Pool:
    """The server's side of one pool: its channel, its living ranks, its temporary folder."""

    def __init__(self, channel: socket.socket, folder: str) -> None:
        self.channel = channel
        self.folder = folder
        self.pids: set[int] = set()

    def tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            send(self.channel, message)

    def end(self) -> None:
        for pid in self.pids:
            kill(pid)
        for pid in self.pids:
            os.waitpid(pid, 0)
        self.channel.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def kill(pid: int) -> None:
    """Kill a rank that was not reaped yet, and the process group of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def reap(pid: int) -> int | None:
    """Wait status of a rank that is over, None while it runs. What it started dies with it."""
    if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        kill(pid)
        return os.waitpid(pid, 0)[1]
    done, status = os.waitpid(pid, os.WNOHANG)
    if not done:
        return None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return status


class Server:
    def __init__(self, main: socket.socket, parent: int) -> None:
        self.main = main
        self.parent = parent
        self.pools: dict[int, Pool] = {}
        self.alarm, self.alarm_end = socket.socketpair()  # readable after a SIGCHLD
        self.alarm.setblocking(False)
        self.alarm_end.setblocking(False)
        signal.set_wakeup_fd(self.alarm_end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector = selectors.DefaultSelector()
        self.selector.register(main, selectors.EVENT_READ)
        self.selector.register(self.alarm, selectors.EVENT_READ)

    def serve(self) -> None:
        """Answer until the parent is gone, then end every pool."""
        while os.getppid() == self.parent:
            for key, _ in self.selector.select(PARENT_CHECK_SECONDS):
                if key.fileobj is self.main:
                    message, fds = receive(self.main)
                    if message is None:
                        return self.end()
                    self.open_pool(message, fds)
                elif key.fileobj is self.alarm:
                    self.alarm.recv(4096)
                elif key.fd in self.pools:
                    self.answer(self.pools[key.fd])
            self.report_exits()
        self.end()

    def end(self) -> None:
        for pool in self.pools.values():
            pool.end()

    def open_pool(self, message: dict[str, Any], fds: list[int]) -> None:
        channel = socket.socket(fileno=fds[0])
        self.pools[channel.fileno()] = Pool(channel, message["folder"])
        self.selector.register(channel, selectors.EVENT_READ)
        try:
            os.mkdir(message["folder"], 0o700)
        except OSError as error:
            self.pools[channel.fileno()].tell({"refused": str(error)})

    def answer(self, pool: Pool) -> None:
        message, fds = receive(pool.channel)
        if message is None:
            self.selector.unregister(pool.channel)
            del self.pools[pool.channel.fileno()]
            pool.end()
        elif message["do"] == "fork":
            server = os.getpid()
            pid = os.fork()
            if pid == 0:
                self.become_rank(message, fds, server)
            pool.pids.add(pid)
            pool.tell({"rank": message["rank"], "pid": pid})
        elif message["pid"] in pool.pids:
            if message["signal"] == signal.SIGKILL:
                kill(message["pid"])
            else:
                os.kill(message["pid"], message["signal"])
        for fd in fds:
            os.close(fd)

    def report_exits(self) -> None:
        for pool in self.pools.values():
            for pid in list(pool.pids):
                status = reap(pid)
                if status is not None:
                    pool.pids.discard(pid)
                    pool.tell({"exited": pid, "code": os.waitstatus_to_exitcode(status)})

    def become_rank(self, message: dict[str, Any], fds: list[int], server: int) -> NoReturn:
        code = 1
        try:
            os.setsid()
            die_with(server)
            self.let_go()
            start_rank(message, fds)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(code)

    def let_go(self) -> None:
        """In a new rank: forget everything that belongs to the server."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.selector.close()
        for pool in self.pools.values():
            pool.channel.close()
        for own in (self.main, self.alarm, self.alarm_end):
            own.close()


def die_with(server: int) -> None:
    """Have the kernel kill this rank when the server dies (Linux; elsewhere it ends when idle)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)


def start_rank(message: dict[str, Any], fds: list[int]) -> None:
    """Take over the parent's working directory, environment and path, then run the worker.

    `fds`: the rank channel, the file for output, the file for stacks, the flight recorder's memory.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel, output, stack, flight = fds
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    for name, fd in (("stdout", 1), ("stderr", 2)):
        stream = open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        setattr(sys, name, stream)
    with contextlib.suppress(OSError):
        os.chdir(message["cwd"])
    os.environ.clear()
    os.environ.update(message["environ"])
    sys.path[:] = message["sys_path"]
    sys.argv[:] = message["argv"]
    worker = importlib.import_module(message["module"])
    worker.main(socket.socket(fileno=channel), stack, flight, message["settings"])


def main() -> None:
    main_fd, parent, more_path = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path += [entry for entry in more_path if entry not in sys.path]
    for name in PRELOAD:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    Server(socket.socket(fileno=main_fd), parent).serve()


if __name__ == "__main__":
    main()
