"""`check`: judges an exercise from the notebook in which it was written."""

from __future__ import annotations

import os
import sys
from typing import Any

from course.grading.exercise import Exercise
from course.grading.judge import judge, points
from course.grading.report import Report

GRADING = "LABKIT_GRADING"
"""Set to 1 where a notebook only runs so that its functions can be collected.

A check then hands its function to the kernel, as it is at that moment, and judges nothing.
"""
NBGRADER = "NBGRADER_EXECUTION"
"""What nbgrader sets to "autograde" or "validate"; there a failed check must be an error."""


class CheckError(Exception):
    """A check that cannot be made, or under nbgrader one that failed. Shown as its sentence."""

    def _render_traceback_(self) -> list[str]:
        return str(self).split("\n")


class CheckFailed(CheckError, AssertionError):
    """Under nbgrader: the exercise is not solved."""


class CheckStopped(KeyboardInterrupt):
    """The user interrupted a check; what follows in a run of many cells does not run."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


_NOTHING: Any = object()


def check(name: str, function: Any = _NOTHING, hidden: bool = False) -> Report:
    """Run `function` on the cases of exercise `name`; a report that a notebook cell displays.

    Args:
        hidden: the hidden cases too.

    Raises:
        CheckError: there is no such exercise, or `function` is missing.
        CheckFailed: a case failed, and nbgrader is running the notebook.
        CheckStopped: the user interrupted it; its ranks are gone.
    """
    __tracebackhide__ = True
    exercise = _find(name)
    if function is _NOTHING:
        raise CheckError(
            f"check({name!r}) was not given your function; want "
            f"check({name!r}, {exercise.function})"
        )
    if os.environ.get(GRADING) == "1":
        _record(exercise, function)
        return Report(name, exercise.title, (), 0.0, exercise.points, note="graded later")
    try:
        verdicts = judge(exercise, function, hidden=hidden)
    except KeyboardInterrupt:
        raise CheckStopped(
            f"you stopped the check of {name}, and its ranks were ended; run the cell again"
        ) from None
    earned = points(exercise, verdicts)
    report = Report(name, exercise.title, verdicts, earned, exercise.points)
    if not report.passed and NBGRADER in os.environ:
        raise CheckFailed(str(report))
    return report


def _record(exercise: Exercise, function: Any) -> None:
    """Hand `function` to the kernel that collects (`collecting_kernel`); elsewhere do nothing."""
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython.get_ipython(), "kernel", None) if ipython else None
    record = getattr(kernel, "record_checked", None)
    if record is not None:
        record(exercise.function, function)


def _find(name: str) -> Exercise:
    import difflib

    from course.exercises import load, names

    try:
        return load(name)
    except LookupError as error:
        close = difflib.get_close_matches(str(name), names(), n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise CheckError(f"{error.args[0]}{meant}") from None
