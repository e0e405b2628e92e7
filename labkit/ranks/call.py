"""One call on all ranks: wait for the results, and notice at once when they cannot come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from labkit.ranks.processes import Closed, Ranks
from labkit.ranks.report import RankError, RankTimeout
from labkit.ranks.wire import Kind, loads
from labkit.ranks.worker import Failure

_TICK_SECONDS = 0.25


class Call:
    def __init__(
        self, ranks: Ranks, timeout: float | None, grace: float, stall_timeout: float
    ) -> None:
        self.ranks = ranks
        self.timeout = timeout
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.grace = grace
        self.stall_timeout = stall_timeout
        self.outcomes: dict[int, Any] = {}

    def send(self, kind: int, body: bytes | memoryview) -> None:
        for rank in self.ranks.ranks:
            rank.channel.send(kind, body)

    def results(self, on_progress: Callable[[int, Any], None] | None) -> list[Any]:
        n = len(self.ranks.ranks)
        failed_at = None
        while len(self.outcomes) < n:
            for event in self.ranks.events(_TICK_SECONDS):
                if isinstance(event, Closed):
                    self.outcomes.setdefault(event.rank, "died")
                    failed_at = failed_at or time.monotonic()
                elif event.kind == Kind.PROGRESS:
                    if on_progress is not None:
                        on_progress(event.rank, loads(event.body))
                elif event.kind == Kind.RAISED:
                    self.outcomes[event.rank] = loads(event.body)
                    failed_at = failed_at or time.monotonic()
                else:
                    self.outcomes[event.rank] = event
            now = time.monotonic()
            if failed_at and now > failed_at + self.grace:
                break
            if self.deadline and now > self.deadline:
                raise RankTimeout(f"timeout after {self.timeout} s")
        for rank, outcome in self.outcomes.items():
            if outcome == "died":
                raise RankError(f"rank {rank} died")
            if isinstance(outcome, Failure):
                raise RankError(f"rank {rank} failed\n{outcome.traceback}")
        return [loads(self.outcomes[rank].body) for rank in range(n)]
