"""All submissions graded, several at a time. Ctrl-C ends what runs and keeps what is done."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course import exercises
from course.grading.notebook_grader import (
    STOPPED,
    WAITS,
    Settings,
    grade_notebook,
    unjudged_notebook,
)
from course.grading.results import Grades, NotebookResult, Row, counting_rows, unjudged_row
from course.grading.submission import Submission, find_submissions
from course.grading.workshop import Workshop

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """One more notebook is graded: `result`, as number `done` of `total`. so_far: all there is."""

    result: NotebookResult
    done: int
    total: int
    so_far: Grades


def grade(
    root: Path, settings: Settings, on_result: Callable[[Progress], None] = lambda progress: None
) -> Grades:
    """Grade every notebook below `root`; `on_result` hears of each one when it is graded.

    SIGINT and SIGTERM stop it, and so does an error in `on_result`: what is not done by then has
    rows that say so. Raises FileNotFoundError, NotADirectoryError, or LookupError when there is
    nothing to grade.
    """
    submissions, students = find_submissions(root)
    if not submissions and not students:
        raise LookupError(f"{root} holds no student's folder; want <student>/<chapter>.ipynb in it")
    workshop = Workshop()
    try:
        with _stopped_by_signals(workshop.stop):
            batch = _Batch(workshop, submissions, students, settings)
            batch.run(on_result)
            return batch.grades()
    finally:
        workshop.close()


class _Batch:
    """Submissions on their way. results: of each one, not graded until it is."""

    def __init__(
        self,
        workshop: Workshop,
        submissions: list[Submission],
        students: list[str],
        settings: Settings,
    ) -> None:
        self.started = time.monotonic()
        self.workshop = workshop
        self.submissions = submissions
        self.students = students
        self.settings = settings
        self.results = [unjudged_notebook(workshop, one, settings, WAITS) for one in submissions]
        self.num_done = 0
        self.trouble = ""

    def run(self, on_result: Callable[[Progress], None]) -> None:
        """Grade `settings.jobs` at a time, until all are done or it is to stop."""
        stop = self.workshop.stop
        running: dict[Future[NotebookResult], int] = {}
        waiting = iter(range(len(self.submissions)))
        with ThreadPoolExecutor(self.settings.jobs) as threads:
            try:
                while True:
                    while len(running) < self.settings.jobs and not stop.is_set():
                        if (index := next(waiting, None)) is None:
                            break
                        one = self.submissions[index]
                        task = threads.submit(grade_notebook, self.workshop, one, self.settings)
                        running[task] = index
                    if not running:
                        break
                    finished, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                    for task in finished:
                        self._take(running.pop(task), task.result(), on_result)
            except BaseException:
                stop.set()  # or leaving the block would wait until the others are graded
                raise

    def _take(
        self, index: int, result: NotebookResult, on_result: Callable[[Progress], None]
    ) -> None:
        self.results[index] = result
        self.num_done += 1
        if self.trouble:
            return
        try:
            on_result(Progress(result, self.num_done, len(self.submissions), self.grades()))
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"
            self.workshop.stop.set()

    def grades(self) -> Grades:
        """What there is by now. What was not graded says why."""
        finished = self.num_done == len(self.submissions) and not any(
            row.reason == STOPPED for one in self.results for row in one.rows
        )
        stopped = self.workshop.stop.is_set() and not finished
        kept = [one for one in self.results if one.rows]  # none: of a chapter not asked for
        if stopped:
            kept = [_stopped(one) for one in kept]
        missing = _not_handed_in(kept, self.students, self.submissions, self.settings)
        order = {name: number for number, name in enumerate(exercises.names())}
        rows = sorted(
            (*counting_rows(kept), *missing),
            key=lambda row: (row.student, row.chapter, order.get(row.exercise, -1)),
        )
        return Grades(
            notebooks=tuple(kept),
            rows=tuple(rows),
            seconds=time.monotonic() - self.started,
            finished=finished,
            stopped=stopped,
            trouble=self.trouble,
        )


def _stopped(result: NotebookResult) -> NotebookResult:
    """Its rows do not wait any more."""
    rows = (replace(row, reason=STOPPED) if row.reason == WAITS else row for row in result.rows)
    return replace(result, rows=tuple(rows))


def _not_handed_in(
    results: list[NotebookResult],
    students: list[str],
    submissions: list[Submission],
    settings: Settings,
) -> Iterator[Row]:
    """Rows of the expected chapters that a student lacks, so that all have the same exercises.

    Expected are those asked for, or else those that anybody handed in; where there is none, a
    student without a notebook has a row without a chapter.
    """
    have = {(result.student, result.chapter) for result in results}
    anything = {submission.student for submission in submissions}
    found = {result.chapter for result in results if result.student}
    expected = settings.chapters or tuple(name for name in exercises.CHAPTERS if name in found)
    for student in students:
        if student not in anything and not expected:
            told = "the student's folder holds no notebook"
            yield Row(student, "", "", 0.0, 0.0, "not-handed-in", told)
        for chapter in expected:
            if (student, chapter) not in have:
                told = f"no notebook of {chapter} was handed in"
                for name in exercises.CHAPTERS[chapter]:
                    yield unjudged_row(student, exercises.load(name), "not-handed-in", told)


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM set `stop`, as long as this lasts (in the main thread only)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(*_: Any) -> None:
        stop.set()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
