"""What grading found: one row per exercise, each with its reason, and the notebooks behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from course.grading.exercise import Exercise
from course.grading.judge import Verdict, points

Status = Literal[
    "passed", "partial", "failed", "missing", "unreadable", "not-handed-in", "not-graded"
]
_MOST_OF_A_REASON = 700
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Row:
    """One exercise of one student.

    status: "passed" (all points), "partial" (some), "failed" (none), "missing" (no function in the
    notebook), "unreadable" (no notebook), "not-handed-in", "not-graded" (the grader's own trouble,
    or it was stopped). exercise is "" where the chapter is not known. points: None where it was not
    graded. notes: on the notebook as a whole.
    """

    student: str
    chapter: str
    exercise: str
    points: float | None
    max_points: float
    status: Status
    reason: str
    notes: str = ""
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True)
class NotebookResult:
    """One notebook, graded. notes: what befell its cells. Peaks in bytes, seconds of wall clock."""

    student: str
    file: str
    chapter: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    kernel_peak_bytes: int = 0
    checker_peak_bytes: int = 0


@dataclass(frozen=True)
class Grades:
    """A run of the grader, over or under way: every notebook, and the rows that count.

    finished: every notebook has been graded. stopped: it was to end before that. trouble: what
    stopped it, where that was an error of the grader's own.
    """

    notebooks: tuple[NotebookResult, ...]
    rows: tuple[Row, ...]
    seconds: float
    finished: bool = True
    stopped: bool = False
    trouble: str = ""

    @property
    def num_not_graded(self) -> int:
        """Rows that say nothing about the student's work."""
        return sum(row.status == "not-graded" for row in self.rows)

    @property
    def has_nothing_graded(self) -> bool:
        """Whether no row is about a notebook that could be read."""
        without = ("unreadable", "not-handed-in")
        return all(row.status in without for row in self.rows)

    @property
    def may_replace_files(self) -> bool:
        """Whether it may take an earlier run's place: complete, and something was graded."""
        return self.finished and not self.has_nothing_graded


def judged_row(
    student: str, exercise: Exercise, verdicts: tuple[Verdict, ...], remarks: Sequence[str] = ()
) -> Row:
    """The row of an exercise that was judged."""
    earned = points(exercise, verdicts)
    passed = all(verdict.passed for verdict in verdicts)
    status: Status = "passed" if passed else "partial" if earned else "failed"
    reason = one_line("; ".join([_reason(verdicts), *remarks]))
    return Row(
        student,
        exercise.chapter,
        exercise.name,
        earned,
        exercise.points,
        status,
        reason,
        verdicts=verdicts,
    )


def unjudged_row(student: str, exercise: Exercise, status: Status, reason: str) -> Row:
    """The row of an exercise without verdicts: 0 points, or none said where it was not graded."""
    return Row(
        student,
        exercise.chapter,
        exercise.name,
        None if status == "not-graded" else 0.0,
        exercise.points,
        status,
        one_line(reason),
    )


def counting_rows(notebooks: Iterable[NotebookResult]) -> tuple[Row, ...]:
    """One row per student, chapter and exercise. Of several notebooks the better result counts.

    Only where it is known whose they are, and of which chapter: other rows stay as they are.
    """
    groups: dict[tuple[str, ...], list[tuple[Row, str]]] = {}
    for number, notebook in enumerate(notebooks):
        for row in notebook.rows:
            known = row.student and row.chapter and row.exercise
            apart = "" if known else str(number)
            key = (row.student, row.chapter, row.exercise, apart)
            groups.setdefault(key, []).append((row, notebook.file))
    return tuple(_better(group) for group in groups.values())


def _better(group: Sequence[tuple[Row, str]]) -> Row:
    """The row with most points, the first of equals; one that was not judged gives way."""
    best, file = max(group, key=lambda one: -1.0 if one[0].points is None else one[0].points)
    if len(group) == 1:
        return best
    files = " and ".join(file for _, file in group)
    told = f"{best.reason}; from {file}, the better of {files}"
    skipped = [file for row, file in group if row.status == "not-graded" and row is not best]
    if skipped:
        told += f"; {' and '.join(skipped)} {'was' if len(skipped) == 1 else 'were'} not graded"
    return replace(best, reason=told)


def one_line(text: str) -> str:
    """Text for a table: no line ends, no control characters, not endless."""
    line = " ".join(_CONTROL.sub("", text).split())
    half = _MOST_OF_A_REASON // 2
    return line if len(line) <= 2 * half else f"{line[:half]} ... {line[-half:]}"


def _reason(verdicts: Sequence[Verdict]) -> str:
    """In words. Of hidden checks only how many fail: their names and messages stay hidden."""
    shown = [verdict for verdict in verdicts if not verdict.hidden]
    hidden = [verdict for verdict in verdicts if verdict.hidden]
    failed = [verdict for verdict in shown if not verdict.passed]
    of_hidden = f"{_failed(hidden)} hidden checks (other seeds and sizes){_untried(hidden)}"
    if all(verdict.passed for verdict in verdicts):
        return f"passed all {len(verdicts)} checks"
    if not failed:
        return f"passed the {len(shown)} checks of the notebook; {of_hidden}"
    first = failed[0]
    if all(verdict.message == first.message for verdict in verdicts):
        return first.message
    told = f"{_failed(shown)} checks{_untried(shown)}, first `{first.case}`: {first.message}"
    return f"{told}; {of_hidden}" if hidden else told


def _failed(verdicts: Sequence[Verdict]) -> str:
    number = sum(not verdict.passed and not verdict.is_untried for verdict in verdicts)
    return f"failed {number} of {len(verdicts)}"


def _untried(verdicts: Sequence[Verdict]) -> str:
    number = sum(verdict.is_untried for verdict in verdicts)
    return f", {number} not tried" if number else ""
