"""One submission, from its file to its rows. Whatever it does, it gets a row per exercise."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from course import exercises
from course.grading.cell_remarks import remarks, why_missing
from course.grading.checking import Checker
from course.grading.collection import Collection
from course.grading.collector import collect
from course.grading.exercise import Exercise
from course.grading.judge import HIDDEN_SEED
from course.grading.kernel_session import KernelStartError
from course.grading.results import (
    NotebookResult,
    Row,
    Status,
    judged_row,
    one_line,
    unjudged_row,
)
from course.grading.sandbox import Stopped
from course.grading.submission import (
    Notebook,
    Submission,
    UnreadableError,
    chapter_of,
    read_notebook,
)
from course.grading.workshop import Workshop

STOPPED = "grading was stopped before this exercise was judged"
WAITS = "grading had not come to this exercise yet"


@dataclass(frozen=True)
class Settings:
    """How to grade. Timeouts in seconds, memory in bytes, seed of the hidden cases.

    notebook_timeout: of one notebook, cells and checks; the cells have a limit of their own too,
    in cell_timeouts. chapters: the ones to grade, handed in or not; empty: whatever was handed in.
    """

    jobs: int = 1
    cell_timeout: float = 30.0
    notebook_timeout: float = 600.0
    memory: int = 1_500_000_000
    hidden: bool = True
    seed: int = HIDDEN_SEED
    chapters: tuple[str, ...] = ()


def grade_notebook(
    workshop: Workshop, submission: Submission, settings: Settings
) -> NotebookResult:
    """Collect and judge. Raises nothing: the grader's own trouble becomes rows as well."""
    started = time.monotonic()
    grader = _Grader(workshop, submission, settings)
    try:
        grader.grade()
    except Stopped:
        grader.fill(STOPPED)
    except KernelStartError as error:
        grader.fill(f"the grader could not run the notebook: {error}")
    except Exception as error:
        grader.fill(f"the grader itself failed: {type(error).__name__}: {error}")
    return grader.result(time.monotonic() - started)


def unjudged_notebook(
    workshop: Workshop, submission: Submission, settings: Settings, reason: str
) -> NotebookResult:
    """The rows that `grade_notebook` would give it, not graded for a reason of the grader's."""
    grader = _Grader(workshop, submission, settings)
    grader.read()
    grader.fill(reason)
    return grader.result(0.0)


class _Grader:
    """The state of grading one notebook: rows so far, by exercise."""

    def __init__(self, workshop: Workshop, submission: Submission, settings: Settings) -> None:
        self.workshop = workshop
        self.submission = submission
        self.settings = settings
        self.chapter = ""
        self.is_asked_for = True
        self.exercises: tuple[Exercise, ...] = ()
        self.rows: dict[str, Row] = {}
        self.collection = Collection()
        self.checker_peak = 0

    def grade(self) -> None:
        started = time.monotonic()
        notebook = self.read()
        if notebook is None:
            return
        self.collection = collect(
            self.workshop,
            notebook,
            [exercise.function for exercise in self.exercises],
            cell_timeout=self.settings.cell_timeout,
            memory=self.settings.memory,
            beside=self.submission.path.parent,
        )
        checker = Checker(
            self.workshop,
            self.settings.memory,
            hidden=self.settings.hidden,
            seed=self.settings.seed,
        )
        try:
            with checker:
                for exercise in self.exercises:
                    left = self.settings.notebook_timeout - (time.monotonic() - started)
                    self.rows[exercise.name] = self._row(checker, notebook, exercise, left)
        finally:
            self.checker_peak = checker.peak

    def read(self) -> Notebook | None:
        """Take in the file and what it asks for; None, where there is nothing to judge."""
        student, notebook, problem = self.submission.student, None, ""
        if not student:
            problem = "lies beside the students' folders; want <student>/<chapter>.ipynb"
        try:
            notebook = read_notebook(self.submission.path)
        except UnreadableError as error:
            problem = problem or str(error)
        self.chapter = chapter_of(self.submission, notebook, _functions()) or ""
        if self.chapter and self.settings.chapters and self.chapter not in self.settings.chapters:
            self.is_asked_for = False
            return None
        names = exercises.CHAPTERS.get(self.chapter, ()) if student else ()
        self.exercises = tuple(exercises.load(name) for name in names)
        if not problem and not self.chapter:
            problem = (
                f"belongs to no chapter: neither its metadata nor its functions nor its name say "
                f"one of {', '.join(exercises.CHAPTERS)}"
            )
        if problem:
            self._fill("unreadable", f"the file {self.submission.name} {problem}")
            return None
        return notebook

    def _row(self, checker: Checker, notebook: Notebook, exercise: Exercise, left: float) -> Row:
        student = self.submission.student
        taken = self.collection.functions.get(exercise.function)
        if taken is None:
            reason = why_missing(notebook, self.collection, exercise.function)
            return unjudged_row(student, exercise, "missing", reason)
        if not taken.packed:
            return unjudged_row(student, exercise, "failed", f"`{exercise.function}`: {taken.text}")
        out_of_time = (
            f"this notebook has used up its time: {self.settings.notebook_timeout:g} s for its "
            f"cells and the checks of all its exercises together"
        )
        if left <= 0:
            return unjudged_row(student, exercise, "failed", f"not tried: {out_of_time}")
        judged = checker.judge(exercise, taken.packed, left)
        if judged.ran_out:
            return unjudged_row(student, exercise, "failed", f"not finished: {out_of_time}")
        if judged.trouble:
            status: Status = "not-graded" if judged.is_ours else "failed"
            return unjudged_row(student, exercise, status, judged.trouble)
        told = remarks(notebook, self.collection, exercise.function)
        return judged_row(student, exercise, judged.verdicts, told)

    def fill(self, reason: str) -> None:
        """Rows for what was not judged, for a reason that is not the student's."""
        self._fill("not-graded", reason)

    def _fill(self, status: Status, reason: str) -> None:
        student = self.submission.student
        for exercise in self.exercises:
            if exercise.name not in self.rows:
                self.rows[exercise.name] = unjudged_row(student, exercise, status, reason)
        if self.is_asked_for and not self.exercises and not self.rows:
            told = one_line(reason)
            points = None if status == "not-graded" else 0.0
            self.rows[""] = Row(student, self.chapter, "", points, 0.0, status, told)

    def result(self, seconds: float) -> NotebookResult:
        found = [note for note in (self.submission.note, *self.collection.notes) if note]
        notes = tuple(one_line(note) for note in found)
        of_all = one_line("; ".join(notes))
        return NotebookResult(
            student=self.submission.student,
            file=self.submission.name,
            chapter=self.chapter,
            rows=tuple(replace(row, notes=of_all) for row in self.rows.values()),
            notes=notes,
            seconds=round(seconds, 1),
            kernel_peak_bytes=self.collection.peak,
            checker_peak_bytes=self.checker_peak,
        )


def _functions() -> Mapping[str, Sequence[str]]:
    """Chapter -> the names of the functions that its exercises ask for."""
    return {
        chapter: [exercises.load(name).function for name in names]
        for chapter, names in exercises.CHAPTERS.items()
    }
