"""Cases run on real ranks: pools by size, each call with a deadline, the outcome as data."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from types import TracebackType

from course.grading.exercise import Case, Outcome
from course.grading.rank_call import CallRecord, run_case
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError

_TORCH_LOG = re.compile(r"\[[EWI]\d{4} [\d:.]+ \w+\.\w+:\d+\]")


class JudgePools:
    """One pool for each number of ranks, started when a case first needs it.

    Made for judging: torch compares collectives, and a certain deadlock ends a call in a second.
    Use it in a `with` block, or `close` it.
    """

    def __init__(self) -> None:
        self._pools: dict[int, RankPool] = {}

    def of(self, size: int) -> RankPool:
        """The pool of `size` ranks."""
        if size not in self._pools:
            self._pools[size] = RankPool(
                size, backend="gloo", check_collectives=True, grace=0.5, stall_timeout=1.0
            )
        return self._pools[size]

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
) -> tuple[Outcome, str]:
    """What the function did in this case, and what it printed (each line with its rank).

    packed: the function, from `pack_function`. timeout: seconds for the call.
    """
    size = max(1, case.ranks)
    arguments = [dict(case.arguments(rank)) for rank in range(size)]
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            records: list[CallRecord] = pools.of(size).run(
                run_case, packed, arguments, tuple(parameters), case.ranks > 0, timeout=timeout
            )
    except RankError as error:
        if not error.reports:
            raise
        return Outcome(returned=(), error=error), _own_lines(printed.getvalue())
    outcome = Outcome(
        returned=tuple(record.returned for record in records),
        traces=tuple(record.trace for record in records) if case.ranks else (),
        changed=tuple(record.changed for record in records),
    )
    return outcome, _own_lines(printed.getvalue())


def _own_lines(printed: str) -> str:
    """What the function printed, without torch's log of a collective that came to nothing."""
    lines = printed.splitlines(keepends=True)
    return "".join(line for line in lines if not _TORCH_LOG.search(line))
