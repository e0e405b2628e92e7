"""All submissions graded, several at a time. Ctrl-C ends what runs and keeps what is done."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course import exercises
from course.grading.notebook_grader import Settings, grade_notebook, stopped_notebook
from course.grading.results import Grades, NotebookResult, Row, counting_rows, unjudged_row
from course.grading.submission import Submission, find_submissions
from course.grading.workshop import Workshop

_POLL_SECONDS = 0.5


def grade(
    root: Path,
    settings: Settings,
    on_result: Callable[[NotebookResult, int, int], None] = lambda result, done, total: None,
) -> Grades:
    """Grade every notebook below `root`; on_result(result, how many are done, of how many).

    SIGINT and SIGTERM stop it: what is not done by then has rows that say so. Raises
    FileNotFoundError, NotADirectoryError, or LookupError when there is nothing to grade.
    """
    submissions, students = find_submissions(root)
    if not submissions and not students:
        raise LookupError(f"{root} holds no student's folder; want <student>/<chapter>.ipynb in it")
    started = time.monotonic()
    workshop = Workshop()
    done: dict[int, NotebookResult] = {}
    try:
        with _stopped_by_signals(workshop.stop), ThreadPoolExecutor(settings.jobs) as threads:
            running: dict[Future[NotebookResult], int] = {}
            waiting = iter(range(len(submissions)))
            while True:
                while len(running) < settings.jobs and not workshop.stop.is_set():
                    if (index := next(waiting, None)) is None:
                        break
                    task = threads.submit(grade_notebook, workshop, submissions[index], settings)
                    running[task] = index
                if not running:
                    break
                finished, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                for task in finished:
                    index = running.pop(task)
                    done[index] = task.result()
                    on_result(done[index], len(done), len(submissions))
    finally:
        workshop.close()
    stopped = workshop.stop.is_set()
    results = [done.get(i) or stopped_notebook(one) for i, one in enumerate(submissions)]
    kept = [one for one in results if one.rows]  # no rows: of a chapter that was not asked for
    rows = (*counting_rows(kept), *_not_handed_in(kept, students, submissions, settings))
    order = {name: number for number, name in enumerate(exercises.names())}
    by_student = sorted(
        rows, key=lambda row: (row.student, row.chapter, order.get(row.exercise, -1))
    )
    return Grades(
        notebooks=tuple(kept),
        rows=tuple(by_student),
        seconds=time.monotonic() - started,
        stopped=stopped,
    )


def _not_handed_in(
    results: list[NotebookResult],
    students: list[str],
    submissions: list[Submission],
    settings: Settings,
) -> Iterator[Row]:
    """Rows of students without a notebook, and of chapters asked for that a student lacks."""
    have = {(result.student, result.chapter) for result in results}
    anything = {submission.student for submission in submissions}
    for student in students:
        if student not in anything and not settings.chapters:
            told = "the student's folder holds no notebook"
            yield Row(student, "", "", 0.0, 0.0, "not-handed-in", told)
        for chapter in settings.chapters:
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
