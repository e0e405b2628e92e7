"""Signals between processes: POSIX semaphores in shared memory, one from each rank to each other.

`sem_post` and `sem_wait` synchronise memory (POSIX.1, XBD 4.12): what a rank wrote before it posted
is what another reads after it waited. So what the collectives rest on holds on x86-64 and on Arm
alike, by the standard rather than by the order in which one processor happens to store. A flag
written from Python would have no such promise. A semaphore also counts, so a signal that comes
early is not lost, and the kernel lets a rank that waits sleep.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import time
from collections.abc import Callable, Sequence

STRIDE = 128
"""Bytes from one semaphore to the next (glibc's take 32): two in one cache line slow each other."""
SPINS = 1000
"""How often a rank looks before it sleeps, where every rank has a core: for some 250 us."""
_FEWEST_SPINS = 4
_FAILURES_PER_PROBE = 64
_SLICE_SECONDS = 0.1
_MOVE_SECONDS = 0.01


class _Moment(ctypes.Structure):
    """C's timespec."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    @classmethod
    def of(cls, seconds: float) -> _Moment:
        whole = int(seconds)
        return cls(whole, int((seconds - whole) * 1e9))


def signal_bytes(ranks: int) -> int:
    """What the signals among `ranks` ranks take, and a word that says on which core each is."""
    return ranks * ranks * STRIDE + ranks * STRIDE


def make_signals(address: int, ranks: int) -> None:
    """Make them in the memory at `address`, before any rank uses them. Raises OSError."""
    library = ctypes.PyDLL(None, use_errno=True)
    if not hasattr(library, "sem_init"):
        raise OSError(errno.ENOSYS, "the C library has no sem_init")
    for number in range(ranks * ranks):
        if library.sem_init(ctypes.c_void_p(address + number * STRIDE), 1, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Signals:
    """Rank `me`'s end of the signals among `ranks` ranks at `address`."""

    def __init__(self, address: int, ranks: int, me: int, *, spins: int = SPINS) -> None:
        """`spins`: the most looks before this rank sleeps; 0 where ranks share cores."""

        def semaphore(sender: int, receiver: int) -> ctypes.c_void_p:
            return ctypes.c_void_p(address + (sender * ranks + receiver) * STRIDE)

        others = [rank for rank in range(ranks) if rank != me]
        self._to = [semaphore(me, rank) for rank in others]
        self._from = [(rank, semaphore(rank, me)) for rank in others]
        self._most_spins = self._spins = spins
        self._failures = 0
        self._moved = 0.0
        cores = address + ranks * ranks * STRIDE
        self._cores = [ctypes.c_int.from_address(cores + rank * STRIDE) for rank in range(ranks)]
        self._me = me
        quick = ctypes.PyDLL(None)  # keeps Python's lock, so a call costs less; none of them blocks
        self._post, self._try = quick.sem_post, quick.sem_trywait
        self._value, self._core = quick.sem_getvalue, quick.sched_getcpu
        self._blocking = ctypes.CDLL(None, use_errno=True)

    def post_to_all(self) -> None:
        """Tell every other rank that I am here."""
        post = self._post
        for semaphore in self._to:
            post(semaphore)

    def wait_for_all(self, on_slow: Callable[[Sequence[int]], None]) -> None:
        """Take one signal of every other rank.

        While they do not come, `on_slow` hears ten times a second which ranks are missing; it may
        raise to end the wait.
        """
        attempt = self._try
        for rank, semaphore in self._from:
            if attempt(semaphore) and not self._spin(semaphore):
                while not self._sleep(semaphore):
                    missing = self.missing()
                    if rank in missing:
                        on_slow(missing)

    def missing(self) -> list[int]:
        """The ranks whose signal is not there now."""
        number = ctypes.c_int()
        missing = []
        for rank, semaphore in self._from:
            self._value(semaphore, ctypes.byref(number))
            if number.value <= 0:
                missing.append(rank)
        return missing

    def _spin(self, semaphore: ctypes.c_void_p) -> bool:
        """Look again and again, for as long as that has been worth it lately.

        It is where the other ranks run at this moment: to wake a sleeper costs them and it several
        times the round. It is not where they wait for the core that this rank spins on.
        """
        attempt = self._try
        for _ in range(self._spins):
            if not attempt(semaphore):
                self._spins = min(self._most_spins, 2 * self._spins)
                return True
        if not self._most_spins:
            return False
        self._failures += 1
        if self._leave_shared_core():
            self._spins = self._most_spins
            return self._spin(semaphore)
        self._spins = max(_FEWEST_SPINS, self._spins // 2)
        if self._failures % _FAILURES_PER_PROBE == 0:  # has it become worth it?
            self._spins = self._most_spins
        return False

    def _leave_shared_core(self) -> bool:
        """Move to another core when a lower rank is on this one, at most once in a while.

        Ranks that wake each other in turn end up on one core: the kernel wakes a sleeper where its
        waker runs. Where it goes from here is up to the kernel again.
        """
        core = self._core() + 1  # 0: not known
        self._cores[self._me].value = core
        taken = {self._cores[rank].value for rank in range(self._me)}
        now = time.monotonic()
        if core not in taken or now - self._moved < _MOVE_SECONDS:
            return False
        self._moved = now
        allowed = os.sched_getaffinity(0)
        free = allowed - {core - 1 for core in taken}
        if not free:
            return False
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, free)
            os.sched_setaffinity(0, allowed)
        return True

    def _sleep(self, semaphore: ctypes.c_void_p) -> bool:
        """Wait in the kernel for a while; False: the signal did not come, or Python has a signal
        handler to run first."""
        blocking = self._blocking
        if hasattr(blocking, "sem_clockwait"):
            moment = _Moment.of(time.monotonic() + _SLICE_SECONDS)
            clock = time.CLOCK_MONOTONIC
            failed = blocking.sem_clockwait(semaphore, clock, ctypes.byref(moment))
        else:
            moment = _Moment.of(time.time() + _SLICE_SECONDS)
            failed = blocking.sem_timedwait(semaphore, ctypes.byref(moment))
        if failed and ctypes.get_errno() not in (errno.ETIMEDOUT, errno.EINTR):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return not failed
