"""`labkit grade`: what it takes, what it prints, which files it writes.

`labkit` finds it through the entry point group `labkit.commands`. Imports nothing heavy itself, so
that `labkit --help` stays quick.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.cli import Command, seconds_argument

if TYPE_CHECKING:
    from course.grading.batch import Progress
    from course.grading.notebook_grader import Settings
    from course.grading.results import Grades, Row

_SEEDS = 10**9
_MOST_NAMES = 4


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("submissions", type=Path, help="a folder laid out <student>/<chapter>.ipynb")
    add("--csv", type=Path, metavar="FILE", help="write a line per exercise")
    add("--json", type=Path, metavar="FILE", help="write everything, with every check")
    add(
        "--gradescope",
        type=Path,
        metavar="FILE",
        help="write Gradescope's results.json; of several students, results.<student>.json each",
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
        "--notebook-timeout",
        type=seconds_argument,
        default=600.0,
        metavar="S",
        help="seconds that one notebook may take, cells and checks (%(default)g)",
    )
    add(
        "--memory-limit",
        type=_gigabytes,
        default=1_500_000_000,
        metavar="GB",
        help="resident memory that a notebook and all it starts may take (1.5)",
    )
    add("--only-visible", action="store_true", help="leave the hidden checks out")
    add(
        "--seed",
        type=_seed,
        metavar="N",
        help="of the hidden checks, to repeat a run (drawn; the summary and the JSON tell it)",
    )


def _count(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{text} is no number of notebooks; want a whole number from 1"
    )


def _seed(text: str) -> int:
    if text.isdecimal() and int(text) < 2**63:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is no seed; want a whole number from 0 to 2**63 - 1")


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
    from course.grading.gradescope import not_judged
    from course.grading.notebook_grader import Settings
    from labkit.doctor.machine import cores
    from labkit.experiments.provenance import Provenance

    files = [arguments.csv, arguments.json, arguments.gradescope]
    for file in files:
        if file is not None:
            grade_files.check_writable(file)
    for chapter in arguments.chapter or ():
        if chapter not in CHAPTERS:
            raise LookupError(f"no chapter is called {chapter!r}; there are {', '.join(CHAPTERS)}")
    seed = secrets.randbelow(_SEEDS) if arguments.seed is None else arguments.seed
    settings = Settings(
        jobs=arguments.jobs or cores().whole,
        cell_timeout=arguments.cell_timeout,
        notebook_timeout=arguments.notebook_timeout,
        memory=arguments.memory_limit,
        hidden=not arguments.only_visible,
        seed=seed,
        chapters=tuple(arguments.chapter or ()),
    )
    packages = ("torch", "numpy", "ipykernel", "jupyter_client", "nbformat")
    provenance = Provenance.here(threads="1 per process", packages=packages)
    about = {"provenance": provenance.as_dict(), "settings": vars(settings)}

    def write(grades: Grades) -> tuple[list[Path], list[Path]]:
        """All files written, and Gradescope's."""
        written: list[Path] = []
        if arguments.csv:
            written.append(grade_files.write_csv(arguments.csv, grades))
        if arguments.json:
            written.append(grade_files.write_json(arguments.json, grades, about))
        of_students: list[Path] = []
        if arguments.gradescope:
            of_students = grade_files.write_gradescope(arguments.gradescope, grades)
        return [*written, *of_students], of_students

    def on_result(progress: Progress) -> None:
        write(progress.so_far)
        _print_result(progress)

    grades = grade(arguments.submissions, settings, on_result)
    written, of_students = write(grades)
    if written and not grades.may_replace_files:
        names = ", ".join(path.name for path in written[:_MOST_NAMES])
        names += " ..." * (len(written) > _MOST_NAMES)
        why = "The run is not complete" if not grades.finished else "Nothing could be graded"
        told = f"{why}, so what there is went to {names}"
        print(f"{told}; files of earlier runs stay as they were", file=sys.stderr)
    if arguments.gradescope and (left_out := not_judged(grades)):
        told = f"No new Gradescope file for {', '.join(left_out)}: not all of it was graded"
        print(told, file=sys.stderr)
    if not any(files):
        print(grade_files.csv_text(grades), end="")
    if len(of_students) > 1:
        told = f"{len(of_students)} files, {of_students[0]} ..."
        print(f"Gradescope takes one student at a time: {told}")
    print(_summary(grades, settings), file=sys.stderr)
    if grades.trouble:
        return 1
    if grades.stopped:
        return 130
    if grades.has_nothing_graded:
        told = "nothing could be graded: no notebook of a chapter was handed in that can be read"
        print(f"labkit: {told}; each row says why", file=sys.stderr)
        return 2
    return 1 if grades.num_not_graded else 0


def _print_result(progress: Progress) -> None:
    result = progress.result
    print(
        f"[{progress.done}/{progress.total}] {result.student}/{result.file}: "
        f"{_points(result.rows)}, {result.seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    for note in result.notes:
        print(f"    {note}", file=sys.stderr, flush=True)


def _points(rows: Sequence[Row]) -> str:
    graded = [(row.points, row.max_points) for row in rows if row.points is not None]
    if rows and not graded:
        return "not graded"
    earned, most = sum(points for points, _ in graded), sum(most for _, most in graded)
    left = len(rows) - len(graded)
    more = f", {left} exercise{'s' if left > 1 else ''} not graded" if left else ""
    return f"{earned:g} of {most:g} points{more}"


def _summary(grades: Grades, settings: Settings) -> str:
    students = len({row.student for row in grades.rows})
    judged = sum(bool(row.verdicts) for row in grades.rows)
    left = f"; {grades.num_not_graded} not graded, see their reasons" * bool(grades.num_not_graded)
    ending = "stopped: " * grades.stopped + f"{grades.trouble}: " * bool(grades.trouble)
    seed = f" Hidden checks had --seed {settings.seed}." * settings.hidden
    return (
        f"{ending}{len(grades.notebooks)} notebooks of {students} students, {len(grades.rows)} "
        f"rows, {judged} exercises judged on ranks{left}.{seed} "
        f"Measured: {grades.seconds:.0f} s with {settings.jobs} at a time"
    )


COMMAND = Command("grade submissions: <student>/<chapter>.ipynb", _arguments, _run)
