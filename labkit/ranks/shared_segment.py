"""The memory that the ranks of a group share: who makes it, how the others find it, what is where.

Rank 0 makes an anonymous file in memory (`memfd_create`) and the others open it through
`/proc/PID/fd/FD` while rank 0 holds it. It never has a name, so nothing is left behind however the
ranks end, SIGKILL included: the memory goes with the last process that has it mapped. The size of
`/dev/shm`, small in containers, does not bound it either.

    signals   one semaphore from each rank to each other
    headers   two per rank: what it calls, in words
    slots     two per rank: its data

What a rank writes, in turn into the one and the other of its two, only it writes.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from labkit.ranks.shared_signals import make_signals, signal_bytes

_PAGE = 4096
HEADER_BYTES = 2 * _PAGE
NONCE_BYTES = 16


@dataclass(frozen=True)
class Layout:
    """What lies where, in bytes from the start; the same on every rank."""

    ranks: int
    slot_bytes: int

    @property
    def headers(self) -> int:
        return _pages(NONCE_BYTES + self.signals + signal_bytes(self.ranks))

    @property
    def signals(self) -> int:
        return 128

    @property
    def slots(self) -> int:
        return self.headers + 2 * self.ranks * HEADER_BYTES

    @property
    def total(self) -> int:
        return self.slots + 2 * self.ranks * self.slot_bytes


class Segment:
    """The mapped memory. Its ranks' processes may die at any moment; it stays readable."""

    def __init__(self, fd: int, layout: Layout) -> None:
        self.layout = layout
        self._memory = mmap.mmap(fd, layout.total)
        self._bytes = memoryview(self._memory)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))

    @property
    def nonce(self) -> bytes:
        """What tells this segment from any other file."""
        return bytes(self._bytes[:NONCE_BYTES])

    @property
    def signals(self) -> int:
        """The address of the semaphores."""
        return self.address + self.layout.signals

    def header(self, turn: int, rank: int) -> memoryview:
        """A rank's header for `turn` 0 or 1, as bytes."""
        start = self.layout.headers + (turn * self.layout.ranks + rank) * HEADER_BYTES
        return self._bytes[start : start + HEADER_BYTES]

    def slot(self, turn: int, rank: int, dtype: torch.dtype) -> Tensor:
        """A rank's slot for `turn` 0 or 1: as many elements of `dtype` as fit."""
        start = self.layout.slots + (turn * self.layout.ranks + rank) * self.layout.slot_bytes
        # In inference mode it would be a tensor that only inference mode may write.
        with torch.inference_mode(False):
            return torch.frombuffer(
                self._memory,
                dtype=dtype,
                count=self.layout.slot_bytes // dtype.itemsize,
                offset=start,
            )


def make_segment(layout: Layout) -> tuple[int, Segment]:
    """A new segment with its semaphores, and the file descriptor by which others can open it.

    The caller closes the descriptor once they have. Raises OSError.
    """
    fd = os.memfd_create("labkit-collectives", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, layout.total)
        segment = Segment(fd, layout)
        segment._bytes[:NONCE_BYTES] = secrets.token_bytes(NONCE_BYTES)
        make_signals(segment.signals, layout.ranks)
    except BaseException:
        os.close(fd)
        raise
    return fd, segment


def open_segment(pid: int, fd: int, nonce: bytes, layout: Layout) -> Segment:
    """The segment that process `pid` holds open as `fd`. Raises OSError, also if it is another."""
    path = f"/proc/{pid}/fd/{fd}"
    own = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        size = os.fstat(own).st_size
        if size != layout.total:
            raise OSError(f"{path} has {size} bytes instead of {layout.total}")
        segment = Segment(own, layout)
    finally:
        os.close(own)
    if segment.nonce != nonce:
        raise OSError(f"{path} is another file")
    return segment


def why_no_segments() -> str:
    """Why this system has no such memory; empty if it has."""
    if sys.platform != "linux":
        return f"shared memory without a name is Linux's, and this is {sys.platform}"
    try:
        fd, _ = make_segment(Layout(2, _PAGE))
    except (OSError, AttributeError) as error:
        return f"this system gives no shared memory ({error})"
    os.close(fd)
    return ""


def host_id() -> str:
    """The same for processes that see each other in /proc: this boot, this container."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def start_time(pid: int) -> str | None:
    """When process `pid` started, in the kernel's ticks; None: it is no more, or only a zombie.

    With it a process is told from a later one of the same id.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before may hold spaces
    return None if fields[0] in "ZX" else fields[19]


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE
