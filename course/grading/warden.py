"""The warden: a small process that starts one command and keeps all it starts within limits.

It runs as a plain script and imports nothing of this project, so that it starts fast and student
code cannot have changed what it uses. What the command leaves behind, however it detached itself,
becomes the warden's own child (Linux: it is a "subreaper") and is killed; the warden ends only when
nothing is left. Elsewhere it goes by the process ids that it saw.

It is driven through one Unix socket, in lines of JSON. It hears {"do": "interrupt"} and
{"do": "end"}; when the other side of the socket closes it ends everything too. It says

    {"is": "started", "pid": 12}
    {"is": "killed", "why": "memory", "bytes": 2100000000, "all": false, "pid": 13}
    {"is": "ended", "code": -9, "peak": 2100000000}

Memory is the resident set of the whole process tree. Where its plain sum, which counts a page
shared by several processes several times, is above the limit, the proportional one decides.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import psutil

SAMPLE_SECONDS = 0.1
MOST_PROCESSES = 200
LONGEST_FILE_BYTES = 1 << 30
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
IS_LINUX = sys.platform == "linux"
GONE = (psutil.NoSuchProcess, psutil.AccessDenied)


class Warden:
    """One command and everything that came of it."""

    def __init__(self, settings: dict[str, Any], channel: socket.socket) -> None:
        self.limit = int(settings["memory"])
        self.spares_root = bool(settings["spares_root"])
        self.channel = channel
        self.heard = b""
        self.peak = 0
        self.seen: set[psutil.Process] = set()
        warden = os.getpid()
        self.root = subprocess.Popen(
            settings["command"],
            cwd=settings["cwd"],
            env=settings["environ"],
            stdin=subprocess.DEVNULL,
            stderr=None if settings["keeps_errors"] else subprocess.DEVNULL,
            pass_fds=settings["pass_fds"],
            start_new_session=True,
            preexec_fn=lambda: prepare(warden),
        )
        for fd in settings["pass_fds"]:
            os.close(fd)
        self.say({"is": "started", "pid": self.root.pid})

    def say(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self.channel.sendall(json.dumps(message).encode() + b"\n")

    def watch(self) -> None:
        """Until the command ends or is to end; then nothing of it is left."""
        try:
            self.channel.settimeout(SAMPLE_SECONDS)
            while self.root.poll() is None and "end" not in (orders := self.orders()):
                if "interrupt" in orders:
                    self.root.send_signal(signal.SIGINT)
                self.look()
        finally:
            self.kill_all()
        self.say({"is": "ended", "code": self.root.wait(), "peak": self.peak})

    def orders(self) -> list[str]:
        """What to do, if anything came within a sample's time; "end" once nobody is there."""
        try:
            part = self.channel.recv(4096)
        except TimeoutError:
            return []
        except OSError:
            part = b""
        if not part:
            return ["end"]
        *lines, self.heard = (self.heard + part).split(b"\n")
        return [json.loads(line)["do"] for line in lines]

    def look(self) -> None:
        """One sample: orphans are killed, and so is who takes more than may be."""
        tree = self.tree()
        for process in tree:
            with contextlib.suppress(*GONE):
                if IS_LINUX and process.ppid() == os.getpid() and process.pid != self.root.pid:
                    process.kill()
        self.reap()
        if len(tree) > MOST_PROCESSES:
            self.say({"is": "killed", "why": "processes", "number": len(tree), "all": True})
            return self.kill_all()
        sizes = {process: resident(process) for process in tree}
        total = sum(sizes.values())
        if total > self.limit:
            total = sum(proportional(process) for process in tree)
        highest = {process: max(sizes[process], high_water(process)) for process in tree}
        most = max([total, *highest.values()])
        self.peak = max(self.peak, most)
        if most > self.limit:
            self.relieve(most, max(highest, key=lambda process: highest[process]))

    def relieve(self, size: int, largest: psutil.Process) -> None:
        """Kill the largest process, or all of them where the command itself is not spared."""
        spares = self.spares_root and largest.pid != self.root.pid
        told = {"is": "killed", "why": "memory", "bytes": size, "all": not spares}
        self.say({**told, "pid": largest.pid})
        if not spares:
            return self.kill_all()
        with contextlib.suppress(*GONE):
            largest.kill()

    def tree(self) -> list[psutil.Process]:
        """Every living process that came of the command."""
        found = set(psutil.Process().children(recursive=True))
        if not IS_LINUX:
            self.seen |= found
            found = {process for process in self.seen if process.is_running()}
        return [process for process in found if is_alive(process)]

    def kill_all(self) -> None:
        """Kill until nothing is left; a fork in between is met in the next round."""
        deadline = time.monotonic() + 10.0
        while time.monotonic() < deadline:
            left = self.tree()
            if not left:
                break
            for process in left:
                with contextlib.suppress(*GONE):
                    process.kill()
            self.reap()
            time.sleep(0.005)
        self.reap()

    def reap(self) -> None:
        """Take note of adopted children that have ended, so that they leave the process table."""
        self.root.poll()
        with contextlib.suppress(ChildProcessError):
            for child in psutil.Process().children():
                if child.pid != self.root.pid:
                    os.waitpid(child.pid, os.WNOHANG)


def prepare(warden: int) -> None:
    """In the command's process before it starts: what it may not do, and that it ends with us."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LONGEST_FILE_BYTES, LONGEST_FILE_BYTES))
    if IS_LINUX:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != warden:
            os._exit(1)


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except GONE:
        return False


def resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except GONE:
        return 0


def proportional(process: psutil.Process) -> int:
    """Resident bytes, with a page that n processes share counted as one n-th for each."""
    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.rss))
    except GONE:
        return resident(process)


def high_water(process: psutil.Process) -> int:
    """The most that the process ever had resident, so that no peak falls between two samples."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as status:
            line = next(line for line in status if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return 0


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    with channel.makefile("rb", buffering=0) as stream:  # what follows the line stays unread
        settings = json.loads(stream.readline())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if IS_LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    Warden(settings, channel).watch()


if __name__ == "__main__":
    main()
