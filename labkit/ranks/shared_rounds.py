"""Rounds of ranks that meet in shared memory: everybody writes, everybody waits, everybody reads.

A collective is one step or several. In a step a rank

    1. takes the next turn, 0, 1, 0, 1, ..., and writes the slot and the header of that turn
    2. posts to all and waits for all: a round; some steps have a second one
    3. reads the others' slots and headers of that turn

Two slots a rank are enough. Say a rank begins step s + 2 and writes the slot that it used in step
s. It has left step s + 1, so in the first round of that it took a signal of every other rank. Each
had finished step s, reading included, before it gave that signal. So nobody still reads what is
now written over; and the signals synchronise memory, which carries that from rank to rank.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from types import TracebackType

from labkit.ranks.shared_segment import HEADER_BYTES, Segment, start_time
from labkit.ranks.shared_signals import Signals

_TEXT = HEADER_BYTES // 2  # from this byte on a header tells in words what its rank called
_WORDS = _TEXT // 8
_LENGTH, _LEFT = _WORDS - 2, _WORDS - 1  # words: bytes of that text; "left half-way"


class CollectiveMismatch(RuntimeError):
    """The ranks called different things. All of them hear of it, and can go on together."""


class RankLost(ConnectionError):
    """A rank that this one waits for has ended, or left a collective half-way."""


class CollectiveTimeout(TimeoutError):
    """A rank has not come within the time that the group was given."""


class Call:
    """What all ranks must call alike, in words, and a number that stands for these words."""

    __slots__ = ("digest", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


class Rounds:
    """Rank `me`'s side of them. `with rounds.calling(...)` around each collective."""

    def __init__(
        self,
        segment: Segment,
        signals: Signals,
        me: int,
        *,
        ranks: Sequence[int],
        processes: Sequence[tuple[int, str]],
        timeout: float,
        have_cores: bool,
    ) -> None:
        """For each rank of the group: what errors call it, its process id and start time.

        `timeout`: seconds that a round may take. `have_cores`: whether each rank has one.
        """
        self.have_cores = have_cores
        self._signals = signals
        self.ranks = ranks
        self._processes = processes
        self._timeout = timeout
        size = len(ranks)
        self._headers = [[segment.header(turn, rank) for rank in range(size)] for turn in (0, 1)]
        self._words = [[header.cast("Q") for header in turn] for turn in self._headers]
        self._me = me
        self._others = [rank for rank in range(size) if rank != me]
        self._turn = 0
        self._number = 0
        self._call = Call("")
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._broken = ""
        self._slow_since = 0.0

    def calling(self, call: Call) -> Rounds:
        """Begin a collective: one thread at a time, none after one that was left half-way."""
        if os.getpid() != self._owner:
            raise RuntimeError("collectives work on the rank itself, not in a process it forked")
        self._lock.acquire()
        if self._broken:
            self._lock.release()
            raise RankLost(f"this group cannot go on: {self._broken}")
        self._call = call
        self._number += 1
        return self

    def __enter__(self) -> Rounds:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if kind is not None and kind is not CollectiveMismatch:
            self._broken = f"{self._where()} was left half-way by {kind.__name__}"
            self._words[0][self._me][_LEFT] = 1
        self._lock.release()

    def next_turn(self) -> int:
        """Begin a step: which of the two slots it uses."""
        self._turn ^= 1
        return self._turn

    def agree(self, numbers: Sequence[int] = ()) -> None:
        """The first round: all ranks are here, and all called the same.

        `numbers` (which may differ) go with it, for the others to `read`.
        """
        words = self._words[self._turn]
        mine, digest = words[self._me], self._call.digest
        mine[0] = digest
        if numbers:
            mine[1 : 1 + len(numbers)] = memoryview(array("Q", numbers))
        self.meet()
        for rank in self._others:
            if words[rank][0] != digest:
                self._explain()

    def read(self, rank: int, count: int) -> list[int]:
        """The first `count` numbers that `rank` passed to `agree`."""
        return self._words[self._turn][rank][1 : 1 + count].tolist()

    def meet(self) -> None:
        """A round: every other rank is as far as I am, and what it wrote so far can be read."""
        self._slow_since = 0.0
        self._signals.post_to_all()
        self._signals.wait_for_all(self._on_slow)

    def _explain(self) -> None:
        """Ranks that called different things tell each other what. Every one of them comes here:
        whoever looks at all digests sees a difference."""
        said = self._call.text.encode()[: HEADER_BYTES - _TEXT]
        self._headers[self._turn][self._me][_TEXT : _TEXT + len(said)] = said
        self._words[self._turn][self._me][_LENGTH] = len(said)
        self.meet()
        called = []
        for rank, name in enumerate(self.ranks):
            length = self._words[self._turn][rank][_LENGTH]
            text = bytes(self._headers[self._turn][rank][_TEXT : _TEXT + length])
            called.append(f"rank {name} {text.decode(errors='replace')}")
        raise CollectiveMismatch(f"the ranks called different things: {'; '.join(called)}")

    def _on_slow(self, missing: Sequence[int]) -> None:
        """Whether it is still worth waiting for these ranks."""
        ended = [rank for rank in missing if not self._is_alive(rank)]
        left = [rank for rank in missing if self._words[0][rank][_LEFT]]
        still = self._signals.missing()  # what a rank gave before it ended counts
        for rank in [*ended, *left]:
            if rank in still:
                how = f"its process {self._processes[rank][0]} has ended"
                if rank not in ended:
                    how = "it left a collective half-way"
                raise RankLost(f"{self._where()}: rank {self.ranks[rank]} will not come: {how}")
        now = time.monotonic()
        self._slow_since = self._slow_since or now
        if now - self._slow_since > self._timeout:
            names = ", ".join(f"rank {self.ranks[rank]}" for rank in missing)
            raise CollectiveTimeout(
                f"{self._where()}: {names} did not come within {self._timeout:g} s, "
                f"though {'its process is' if len(missing) == 1 else 'their processes are'} alive"
            )

    def _is_alive(self, rank: int) -> bool:
        pid, started = self._processes[rank]
        return start_time(pid) == started

    def _where(self) -> str:
        return f"{self._call.text} (number {self._number} of these ranks)"
