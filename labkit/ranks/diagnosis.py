"""From ranks that failed or hang to the error that says so: who, where, and what the others do."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from labkit.ranks.conflict import Verdict, find_conflict, name_ranks
from labkit.ranks.deadlock import missing_ranks
from labkit.ranks.failure import Failure
from labkit.ranks.flight_entry import FlightEntry
from labkit.ranks.rank_process import RankProcess
from labkit.ranks.rank_set import RankSet
from labkit.ranks.report import RankError, RankReport, RankState, RankTimeout, compose
from labkit.ranks.stack import readable_paths, user_stack
from labkit.ranks.wire import RebuildError, rebuild

_STACK_SECONDS = 0.5
_EXIT_SECONDS = 1.0
_MISMATCH = "Detected mismatch between collectives"
_MAX_HEADLINE = 200  # characters
_BROKEN_CONNECTION = (
    "connection closed",
    "connection reset",
    "broken pipe",
    "gloo/transport",
    "will not come: ",  # RankLost, over shared memory
)


@dataclass(frozen=True)
class Returned:
    body: bytearray


@dataclass(frozen=True)
class Died:
    moment: float  # time.monotonic()


Error = TypeVar("Error", bound=RankError)
Outcome = Returned | Failure | Died


def failure(ranks: RankSet, outcomes: Mapping[int, Outcome]) -> RankError:
    """A rank raised, exited or died."""
    reports = _reports(ranks, outcomes)
    conflict = find_conflict([report.flight for report in reports])
    if conflict is not None:
        reports = [_without_mismatch(report) for report in reports]
        return _error(RankError, conflict.culprit, reports, conflict.reason)
    failed = {rank: o for rank, o in outcomes.items() if not isinstance(o, Returned)}
    own = {rank: o for rank, o in failed.items() if not _is_consequence(o)} or failed
    errors = {reports[rank].error for rank in own}
    if len(errors) == 1 and "" not in errors:
        culprit = min(own)
    else:
        culprit = min(own, key=lambda rank: own[rank].moment)
    return _error(RankError, culprit, reports)


def timeout(ranks: RankSet, outcomes: Mapping[int, Outcome], seconds: float | None) -> RankTimeout:
    """The deadline passed: blame a rank that others wait for, or else the first unfinished."""
    reports = _reports(ranks, outcomes)
    flights = [report.flight for report in reports]
    unfinished = [report.rank for report in reports if report.state in ("running", "waiting")]
    waiting = [report.rank for report in reports if report.state == "waiting"]
    awaited = {other for rank in waiting for other in missing_ranks(rank, flights)}
    running = [rank for rank in unfinished if rank not in waiting]
    culprit = next((rank for rank in running if rank in awaited), (running or unfinished)[0])
    verb = "have" if len(unfinished) > 1 else "has"
    summary = f"{name_ranks(unfinished)} {verb} not finished after {seconds:g} s"
    if culprit in awaited:
        summary += f"; {name_ranks(waiting)} {'wait' if len(waiting) > 1 else 'waits'} for "
        summary += name_ranks(sorted(awaited))
    return _error(RankTimeout, culprit, reports, summary)


def disagreement(ranks: RankSet, outcomes: Mapping[int, Outcome], found: Verdict) -> RankError:
    """The ranks wait in a way that no rank can end, or returned without having called the same."""
    return _error(RankError, found.culprit, _reports(ranks, outcomes), found.reason)


def flood(ranks: RankSet, outcomes: Mapping[int, Outcome], rank: int, limit: int) -> RankError:
    """A rank prints without end."""
    summary = f"rank {rank} printed more than {limit >> 20} MiB in one call"
    return _error(RankError, rank, _reports(ranks, outcomes), summary)


def unreadable(
    ranks: RankSet, outcomes: Mapping[int, Outcome], rank: int, verb: str, error: RebuildError
) -> RankError:
    """A rank returned or reported what cannot be unpickled in this process."""
    instead = "return plain data, or keep it on the ranks with pool.put"
    if verb == "reported":
        instead = "report plain data"
    summary = f"rank {rank} {verb} a value that cannot be rebuilt here ({error}): {instead}"
    return _error(RankError, rank, _reports(ranks, outcomes), summary)


def _error(
    kind: type[Error], culprit: int, reports: Sequence[RankReport], summary: str | None = None
) -> Error:
    summary = summary or reports[culprit].headline()
    return kind(compose(summary, culprit, reports), culprit, reports)


def _is_consequence(outcome: Outcome) -> bool:
    """Whether a rank failed only because another one was gone."""
    if not isinstance(outcome, Failure):
        return False
    return any(sign in outcome.message.lower() for sign in _BROKEN_CONNECTION)


def _without_mismatch(report: RankReport) -> RankReport:
    """Drop torch's long account of a mismatch that the summary has told already."""
    if _MISMATCH in report.error:
        return replace(report, consequence="was stopped in")
    return report


def _reports(ranks: RankSet, outcomes: Mapping[int, Outcome]) -> list[RankReport]:
    """Look at every rank; those still running are asked for their stack."""
    flights = [rank.flight() for rank in ranks.members]
    _ask_for_stacks(ranks, [rank for rank in ranks.members if rank.rank not in outcomes])
    died = [rank for rank in ranks.members if isinstance(outcomes.get(rank.rank), Died)]
    ranks.wait_for_exit(died, _EXIT_SECONDS)
    return [
        _report(rank, outcomes.get(rank.rank), flight)
        for rank, flight in zip(ranks.members, flights, strict=True)
    ]


def _ask_for_stacks(ranks: RankSet, running: Sequence[RankProcess]) -> None:
    for rank in running:
        ranks.signal(rank, signal.SIGUSR1)
    deadline = time.monotonic() + _STACK_SECONDS
    while time.monotonic() < deadline:
        if all(rank.stack_text().endswith("\n") for rank in running):
            break
        time.sleep(0.01)


def _report(rank: RankProcess, outcome: Outcome | None, flight: FlightEntry) -> RankReport:
    match outcome:
        case None:
            state: RankState = "waiting" if flight.state == "in" else "running"
            return RankReport(rank.rank, state, flight, stack=user_stack(rank.stack_text()))
        case Returned():
            return RankReport(rank.rank, "returned", flight)
        case Died():
            stack = user_stack(rank.stack_text())
            return RankReport(rank.rank, "died", flight, stack=stack, exit_code=rank.exit_code)
    return RankReport(
        rank.rank,
        "exited" if outcome.kind == "exited" else "raised",
        flight,
        error=_error_text(outcome),
        traceback=readable_paths(outcome.traceback),
        stack=readable_paths(outcome.stack),
        consequence="lost its connection in" if _is_consequence(outcome) else "",
        exception=_exception(outcome),
    )


def _error_text(outcome: Failure) -> str:
    if outcome.kind == "exited":
        return f"sys.exit({outcome.message})"
    first_line = outcome.message.strip().split("\n")[0]
    if len(first_line) > _MAX_HEADLINE:
        first_line = first_line[:_MAX_HEADLINE] + " ..."
    return f"{outcome.type_name}: {first_line}" if first_line else outcome.type_name


def _exception(outcome: Failure) -> BaseException | None:
    try:
        exception = rebuild(outcome.exception) if outcome.exception else None
    except RebuildError:
        return None
    return exception if isinstance(exception, BaseException) else None
