"""What a failed call tells: one report per rank, and an error that reads as a short account."""

from __future__ import annotations

import signal
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from labkit.ranks.flight_entry import FlightEntry
from labkit.ranks.stack import calling_frames

RankState = Literal["returned", "raised", "exited", "died", "waiting", "running"]


@dataclass(frozen=True)
class RankReport:
    """How one rank was when the call failed.

    `waiting`: inside a collective; `running`: in Python or C code outside one; `exited`: it called
    sys.exit; `died`: the process is gone (`exit_code`, negative for a signal).
    """

    rank: int
    state: RankState
    flight: FlightEntry
    error: str = ""  # "ValueError: boom"
    traceback: str = ""
    stack: str = ""  # where it was, outermost call first
    exit_code: int | None = None
    exception: BaseException | None = None  # the original, if it could be brought over
    consequence: str = ""  # "lost its connection in": it raised because of another rank

    def headline(self) -> str:
        """One line: what became of this rank."""
        place = "" if self.flight.state != "in" else f" inside {_last(self.flight)}"
        match self.state:
            case "returned":
                return f"rank {self.rank} has returned"
            case "raised" if self.consequence:
                return f"rank {self.rank} {self.consequence} {_last(self.flight)}"
            case "raised":
                return f"rank {self.rank} raised {self.error}"
            case "exited":
                return f"rank {self.rank} called {self.error}"
            case "died":
                return f"rank {self.rank} {how_it_ended(self.exit_code)}{place}"
            case "waiting":
                return f"rank {self.rank} waits in {_last(self.flight)}"
            case "running":
                return f"rank {self.rank} runs, in no collective ({_before(self.flight)})"

    def account(self) -> str:
        """The headline and where in the code it was."""
        shows_traceback = self.state in ("raised", "exited") and not self.consequence
        detail = self.traceback if shows_traceback else self.stack
        if not detail:
            return self.headline()
        return f"{self.headline()}\n{textwrap.indent(detail.rstrip(), '    ')}"


def _last(flight: FlightEntry) -> str:
    return "a collective" if flight.last is None else flight.last.describe()


def _before(flight: FlightEntry) -> str:
    if flight.state == "idle" or flight.last is None:
        return "none in this call so far"
    return f"its last one: {flight.last.describe()}"


def how_it_ended(exit_code: int | None) -> str:
    """`was killed by SIGKILL`, `ended with exit code 3`: a process's exit code in words."""
    if exit_code is None:
        return "died"
    if exit_code >= 0:
        return f"ended its process with exit code {exit_code} before it returned"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = " (the system does that when memory runs out)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


class RankError(RuntimeError):
    """A call failed.

    Attributes:
        rank: the rank to blame.
        reports: how each rank was, in rank order.
    """

    def __init__(self, message: str, rank: int, reports: Sequence[RankReport] = ()) -> None:
        super().__init__(message)
        self.rank = rank
        self.reports = tuple(reports)

    def __str__(self) -> str:
        return str(self.args[0])

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the line of the cell, then the report."""
        return [type(self).__name__, calling_frames(self.__traceback__), "", *str(self).split("\n")]

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.rank, self.reports)


class CallStopped(RuntimeError):
    """A call was ended from another thread, by `restart` or `close` of its pool."""


class RankTimeout(RankError, TimeoutError):
    """A call took longer than its timeout."""


def compose(summary: str, culprit: int, reports: Sequence[RankReport]) -> str:
    """The text of a RankError: the summary, the culprit's account, then the other ranks'."""
    first = reports[culprit]
    parts = [] if first.headline() == summary else [summary]
    told: dict[str, int] = {}
    for report in (first, *(report for report in reports if report.rank != culprit)):
        text = report.account()
        body = text.removeprefix(report.headline())
        if report is not first and _same_error(report, first):
            text = f"rank {report.rank} raised the same"
        elif body in told:
            text = f"{report.headline()}, at the same place as rank {told[body]}"
        elif body:
            told[body] = report.rank
        parts.append(text)
    return "\n\n".join(parts)


def _same_error(a: RankReport, b: RankReport) -> bool:
    return a.state == "raised" and a.error == b.error and not a.consequence
