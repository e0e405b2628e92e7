"""One call on all ranks: wait for the results, and notice soon when they cannot come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from labkit.ranks import diagnosis
from labkit.ranks.agreement import all_agree, find_disagreement
from labkit.ranks.deadlock import find_deadlock
from labkit.ranks.diagnosis import Died, Outcome, Returned
from labkit.ranks.rank_set import Closed, Frame, RankSet
from labkit.ranks.wire import Kind, RebuildError, loads, rebuild

_TICK_SECONDS = 0.25
_MAX_OUTPUT_BYTES = 256 << 20


class Call:
    """`send` the call, then ask for its `results`; an exception leaves ranks that must be killed.

    Args:
        ranks: where to run it.
        timeout: seconds from now on; None: no limit.
        grace: seconds that ranks get to finish once one has failed.
        stall_timeout: seconds without progress after which a certain deadlock ends the call.
    """

    def __init__(
        self, ranks: RankSet, timeout: float | None, grace: float, stall_timeout: float
    ) -> None:
        self.ranks = ranks
        self.timeout = timeout
        self.deadline = float("inf") if timeout is None else time.monotonic() + timeout
        self.grace = grace
        self.stall_timeout = stall_timeout
        self.outcomes: dict[int, Outcome] = {}
        ranks.num_calls += 1
        self._number = ranks.num_calls
        for rank in ranks.members:
            rank.call = self._number
        self._first_failure = float("inf")
        self._picture: object = None
        self._picture_since = 0.0

    def send(self, kind: int, body: bytes | memoryview) -> None:
        """Send a frame to every rank; one that is dead or does not take it is noticed later."""
        for rank in self.ranks.members:
            left = self.deadline - time.monotonic()
            rank.channel.send_within(max(0.01, left), kind, body, self._number)

    def results(self, on_progress: Callable[[int, Any], None] | None) -> list[Any]:
        """The results in rank order; raises RankError or RankTimeout."""
        __tracebackhide__ = True
        size = len(self.ranks.members)
        next_look = time.monotonic() + _TICK_SECONDS
        while len(self.outcomes) < size:
            for event in self.ranks.events(next_look - time.monotonic()):
                self._hear(event, on_progress)
            now = time.monotonic()
            if now > self._first_failure + self.grace:
                break
            if now > self.deadline:
                raise diagnosis.timeout(self.ranks, self.outcomes, self.timeout)
            if now >= next_look:
                next_look = now + _TICK_SECONDS
                self._look(now)
        if self._first_failure < float("inf"):
            raise diagnosis.failure(self.ranks, self.outcomes)
        self._check_all_called_the_same()
        return [self._result(rank) for rank in range(size)]

    def _hear(self, event: Frame | Closed, on_progress: Callable[[int, Any], None] | None) -> None:
        if isinstance(event, Closed):
            if event.rank not in self.outcomes:
                self._failed(event.rank, Died(time.monotonic()))
        elif event.call != self._number:
            pass  # from a thread that an earlier call left running
        elif event.kind == Kind.PROGRESS:
            if on_progress is not None:
                on_progress(event.rank, self._rebuild(event.rank, "reported", event.body))
        elif event.kind == Kind.RAISED:
            self._failed(event.rank, loads(event.body))
        else:
            self.outcomes[event.rank] = Returned(event.body)

    def _failed(self, rank: int, outcome: Outcome) -> None:
        self.outcomes[rank] = outcome
        self._first_failure = min(self._first_failure, time.monotonic())

    def _look(self, now: float) -> None:
        """Look at the ranks from outside: is there a deadlock, or output without end?"""
        for rank in self.ranks.members:
            if rank.pending_output() > _MAX_OUTPUT_BYTES:
                raise diagnosis.flood(self.ranks, self.outcomes, rank.rank, _MAX_OUTPUT_BYTES)
        if self._first_failure < float("inf"):
            return
        __tracebackhide__ = True
        flights = [rank.flight() for rank in self.ranks.members]
        finished = frozenset(self.outcomes)
        deadlock = find_deadlock(flights, finished)
        picture = deadlock and (finished, [flights[rank].counter for rank in deadlock.ranks])
        if picture != self._picture:
            self._picture, self._picture_since = picture, now
        elif deadlock and now - self._picture_since >= self.stall_timeout:
            raise diagnosis.disagreement(self.ranks, self.outcomes, deadlock)

    def _check_all_called_the_same(self) -> None:
        """All ranks returned, but what mismatched collectives left behind in tensors is garbage."""
        __tracebackhide__ = True
        if all_agree([rank.streams() for rank in self.ranks.members]):
            return
        found = find_disagreement([rank.flight() for rank in self.ranks.members])
        if found is not None:
            raise diagnosis.disagreement(self.ranks, self.outcomes, found)

    def _result(self, rank: int) -> Any:
        outcome = self.outcomes[rank]
        assert isinstance(outcome, Returned)
        return self._rebuild(rank, "returned", outcome.body)

    def _rebuild(self, rank: int, verb: str, body: bytearray) -> Any:
        """What a rank's user code has pickled; RankError when it cannot be unpickled here."""
        __tracebackhide__ = True
        try:
            return rebuild(body)
        except RebuildError as error:
            raise diagnosis.unreadable(self.ranks, self.outcomes, rank, verb, error) from None
