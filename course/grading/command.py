"""`labkit grade`: what it takes, what it prints, which files it writes.

`labkit` finds it through the entry point group `labkit.commands`. Imports nothing heavy itself, so
that `labkit --help` stays quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.cli import Command, seconds_argument

if TYPE_CHECKING:
    from course.grading.results import Grades, NotebookResult


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("submissions", type=Path, help="a folder laid out <student>/<chapter>.ipynb")
    add("--csv", type=Path, metavar="FILE", help="write a line per exercise")
    add("--json", type=Path, metavar="FILE", help="write everything, with every check")
    add(
        "--gradescope",
        type=Path,
        metavar="FILE",
        help="write Gradescope's results.json; of several students, FILE.<student> beside it",
    )
    add("--chapter", action="append", metavar="NAME", help="grade this one only; may be repeated")
    add("--jobs", type=_count, metavar="N", help="notebooks at a time (one for each core)")
    add(
        "--cell-timeout",
        type=seconds_argument,
        default=30.0,
        metavar="S",
        help="seconds that one cell may take (%(default)g)",
    )
    add(
        "--memory-limit",
        type=_gigabytes,
        default=1_500_000_000,
        metavar="GB",
        help="resident memory that a notebook and all it starts may take (1.5)",
    )
    add("--only-visible", action="store_true", help="leave the hidden checks out")
    add("--seed", type=int, metavar="N", help="of the hidden checks")


def _count(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{text} is no number of notebooks; want a whole number from 1"
    )


def _gigabytes(text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if 0.8 <= value < 1e6:
        return int(value * 1e9)
    raise argparse.ArgumentTypeError(
        f"{text} is no memory limit; want GB (1e9 bytes) from 0.8, since a kernel with torch and "
        f"the ranks of a check take up to 0.7 before student code holds anything"
    )


def _run(arguments: argparse.Namespace) -> int:
    from course.exercises import CHAPTERS
    from course.grading import grade_files
    from course.grading.batch import grade
    from course.grading.notebook_grader import Settings
    from labkit.experiments.provenance import Provenance

    files = [arguments.csv, arguments.json, arguments.gradescope]
    for file in files:
        if file is not None:
            grade_files.check_writable(file)
    for chapter in arguments.chapter or ():
        if chapter not in CHAPTERS:
            raise LookupError(f"no chapter is called {chapter!r}; there are {', '.join(CHAPTERS)}")
    chosen: dict[str, Any] = {} if arguments.seed is None else {"seed": arguments.seed}
    settings = Settings(
        jobs=arguments.jobs or _cores(),
        cell_timeout=arguments.cell_timeout,
        memory=arguments.memory_limit,
        hidden=not arguments.only_visible,
        chapters=tuple(arguments.chapter or ()),
        **chosen,
    )
    packages = ("torch", "numpy", "ipykernel", "jupyter_client", "nbformat")
    provenance = Provenance.here(threads="1 per process", packages=packages)
    grades = grade(arguments.submissions, settings, _print_result)
    if arguments.csv:
        grade_files.write_csv(arguments.csv, grades)
    if arguments.json:
        about = {"provenance": provenance.as_dict(), "settings": vars(settings)}
        grade_files.write_json(arguments.json, grades, about)
    if arguments.gradescope:
        written = grade_files.write_gradescope(arguments.gradescope, grades)
        if len(written) > 1:
            print(f"Gradescope takes one student at a time: {len(written)} files, {written[0]} ...")
    if not any(files):
        print(grade_files.csv_text(grades), end="")
    print(_summary(grades, settings.jobs), file=sys.stderr)
    return 130 if grades.stopped else 1 if grades.num_not_graded else 0


def _print_result(result: NotebookResult, done: int, total: int) -> None:
    earned = sum(row.points for row in result.rows)
    most = sum(row.max_points for row in result.rows)
    print(
        f"[{done}/{total}] {result.student}/{result.file}: {earned:g} of {most:g} points, "
        f"{result.seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    for note in result.notes:
        print(f"    {note}", file=sys.stderr, flush=True)


def _summary(grades: Grades, jobs: int) -> str:
    students = len({row.student for row in grades.rows})
    judged = sum(bool(row.verdicts) for row in grades.rows)
    left = f"; {grades.num_not_graded} not graded, see their reasons" * bool(grades.num_not_graded)
    stopped = "stopped: " * grades.stopped
    return (
        f"{stopped}{len(grades.notebooks)} notebooks of {students} students, {len(grades.rows)} "
        f"rows, {judged} exercises judged on ranks{left}. "
        f"Measured: {grades.seconds:.0f} s with {jobs} at a time"
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


COMMAND = Command("grade submissions: <student>/<chapter>.ipynb", _arguments, _run)
