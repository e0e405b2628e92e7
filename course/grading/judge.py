"""An exercise's cases run and judged, one verdict each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from course.grading.case_run import JudgePools, run
from course.grading.diagnosis import Diagnosis, diagnose
from course.grading.exercise import Case, Exercise, Outcome
from course.grading.function_bytes import FunctionProblem, pack_function

VISIBLE_SEED = 0
"""Of the cases that a notebook shows: the same for everybody, and for the grader."""
HIDDEN_SEED = 1
"""Of the hidden cases of `check(..., hidden=True)`; `labkit grade` draws another for each run."""
MAX_HANGS = 2
"""Cases of one exercise that may not end, or end with ranks that wait for each other, before the
rest is not tried: each costs seconds, and a new start of the ranks."""
_NOT_TRIED = "not tried: "
BUDGET = 3
"""The calls of one exercise may take so many times the deadline of one, together."""


@dataclass(frozen=True)
class Verdict:
    """One case, judged. key and message are "" when it passed; `is_untried`: it was not run.

    printed: what the ranks printed during the call, each line with its rank. pid: the process of
    the rank to blame, where the call failed.
    """

    exercise: str
    case: str
    hidden: bool
    passed: bool
    key: str
    message: str
    weight: int
    printed: str = ""
    pid: int | None = None

    @property
    def is_untried(self) -> bool:
        """Whether cases before it cost so much that this one was not run."""
        return self.message.startswith(_NOT_TRIED)


def judge(
    exercise: Exercise,
    function: Any,
    *,
    hidden: bool = False,
    seed: int = HIDDEN_SEED,
    pools: JudgePools | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for each case: the visible ones, and with `hidden` the hidden ones after them.

    Args:
        function: the student's function, or its bytes from `pack_function`. It is called on ranks
            only; bytes are not even loaded here.
        seed: of the hidden cases. The visible ones always have VISIBLE_SEED.
        pools: where to run; None: ranks of its own, ended afterwards.
    """
    cases = [(case, False) for case in exercise.visible(VISIBLE_SEED)]
    if hidden:
        cases += [(case, True) for case in exercise.hidden(seed)]
    try:
        packed = function if isinstance(function, bytes) else pack_function(function)
    except FunctionProblem as problem:
        found = Diagnosis(problem.key, problem.text)
        return tuple(_verdict(exercise, case, is_hidden, found) for case, is_hidden in cases)
    if pools is None:
        with JudgePools() as own:
            return _judge(exercise, cases, packed, own)
    return _judge(exercise, cases, packed, pools)


def points(exercise: Exercise, verdicts: Sequence[Verdict]) -> float:
    """Points earned: the exercise's points, shared out over the verdicts by weight."""
    total = sum(verdict.weight for verdict in verdicts)
    earned = sum(verdict.weight for verdict in verdicts if verdict.passed)
    return round(exercise.points * earned / total, 2) if total else 0.0


def _judge(
    exercise: Exercise, cases: Sequence[tuple[Case, bool]], packed: bytes, pools: JudgePools
) -> tuple[Verdict, ...]:
    verdicts: list[Verdict] = []
    hangs: list[Verdict] = []
    used, budget = 0.0, BUDGET * exercise.timeout
    for case, is_hidden in cases:
        if len(hangs) >= MAX_HANGS:
            told = f"{_NOT_TRIED}{MAX_HANGS} cases before it did not end"
            found: Diagnosis | None = Diagnosis(hangs[-1].key, told)
            verdicts.append(_verdict(exercise, case, is_hidden, found))
        elif used >= budget:
            told = (
                f"{_NOT_TRIED}this exercise has used up its time. The calls before it took "
                f"{used:.0f} s, and all of them may take {budget:g} s together"
            )
            verdicts.append(_verdict(exercise, case, is_hidden, Diagnosis("out-of-time", told)))
        else:
            made = run(case, packed, exercise.parameters, exercise.timeout, pools)
            used += made.seconds
            found = diagnose(case, made.outcome, exercise.tolerance)
            verdict = _verdict(exercise, case, is_hidden, found)
            verdicts.append(replace(verdict, printed=made.printed, pid=made.pid))
            if _ranks_hang(made.outcome):
                hangs.append(verdict)
    return tuple(verdicts)


def _ranks_hang(outcome: Outcome) -> bool:
    """Whether ranks were at it still when the call was ended, and not because one had failed."""
    if outcome.error is None:
        return False
    reports = outcome.error.reports
    return reports[outcome.error.rank].state in ("waiting", "running", "returned") and any(
        report.state in ("waiting", "running") for report in reports
    )


def _verdict(exercise: Exercise, case: Case, is_hidden: bool, found: Diagnosis | None) -> Verdict:
    return Verdict(
        exercise=exercise.name,
        case=case.name,
        hidden=is_hidden,
        passed=found is None,
        key="" if found is None else found.key,
        message="" if found is None else found.message,
        weight=case.weight,
    )
