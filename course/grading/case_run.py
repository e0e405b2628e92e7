"""Cases run on real ranks: pools by size, each call with a deadline, the outcome as data."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from types import TracebackType

from course.grading.exercise import Case, Outcome
from course.grading.rank_call import CallRecord, process_id, run_case
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError

_TORCH_LOG = re.compile(r"\[[EWI]\d{4} [\d:.]+ \w+\.\w+:\d+\]")


@dataclass(frozen=True)
class CaseRun:
    """What one case's call did.

    printed: each line with its rank. seconds: of the call, without starting ranks for it.
    pid: of the rank to blame where the call failed, else None.
    """

    outcome: Outcome
    printed: str
    seconds: float
    pid: int | None = None


class JudgePools:
    """One pool for each number of ranks, started when a case first needs it.

    Made for judging: torch compares collectives, and a certain deadlock ends a call in a second.
    Use it in a `with` block, or `close` it.
    """

    def __init__(self) -> None:
        self._pools: dict[int, RankPool] = {}
        self._pids: dict[int, tuple[object, list[int]]] = {}

    def of(self, size: int) -> RankPool:
        """The pool of `size` ranks."""
        if size not in self._pools:
            self._pools[size] = RankPool(
                size, backend="gloo", check_collectives=True, grace=0.5, stall_timeout=1.0
            )
        return self._pools[size]

    def started(self, size: int) -> tuple[RankPool, list[int]]:
        """The pool of `size` ranks, ready for a call, and their process ids.

        Raises RankError or StartError where ranks do not start; no student's code has run then.
        """
        pool = self.of(size)
        start, pids = self._pids.get(size, (None, []))
        if start is None or start is not pool.start_id:
            pids = pool.run(process_id)
            self._pids[size] = pool.start_id, pids
        return pool, pids

    def close(self) -> None:
        """End all ranks."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    def __enter__(self) -> JudgePools:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()


def run(
    case: Case, packed: bytes, parameters: Sequence[str], timeout: float, pools: JudgePools
) -> CaseRun:
    """Call the function as this case wants it, on ranks.

    packed: the function, from `pack_function`. timeout: seconds for the call.
    """
    size = max(1, case.ranks)
    arguments = [dict(case.arguments(rank)) for rank in range(size)]
    pool, pids = pools.started(size)
    printed = io.StringIO()
    begun = time.monotonic()
    try:
        with redirect_stdout(printed):
            records: list[CallRecord] = pool.run(
                run_case, packed, arguments, tuple(parameters), case.ranks > 0, timeout=timeout
            )
    except RankError as error:
        if not error.reports:
            raise
        outcome, pid = Outcome(returned=(), error=error), pids[error.rank]
        return CaseRun(outcome, _own_lines(printed.getvalue()), time.monotonic() - begun, pid)
    seconds = time.monotonic() - begun
    outcome = Outcome(
        returned=tuple(record.returned for record in records),
        traces=tuple(record.trace for record in records) if case.ranks else (),
        changed=tuple(record.changed for record in records),
    )
    return CaseRun(outcome, _own_lines(printed.getvalue()), seconds)


def _own_lines(printed: str) -> str:
    """What the function printed, without torch's log of a collective that came to nothing."""
    lines = printed.splitlines(keepends=True)
    return "".join(line for line in lines if not _TORCH_LOG.search(line))
