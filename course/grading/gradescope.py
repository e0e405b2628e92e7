"""Gradescope's results.json (gradescope-autograders.readthedocs.io, "Specs", "Output format").

Each exercise becomes two tests: the checks of the notebook, which students see, and the hidden
ones, which Gradescope shows to staff only. Their points add up to the exercise's. There is no score
for the whole, which would tell students what the hidden checks gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course import exercises
from course.grading.judge import Verdict
from course.grading.results import Grades, Row


def students(grades: Grades) -> list[str]:
    """All of them, in order."""
    return list(dict.fromkeys(row.student for row in grades.rows if row.student))


def not_judged(grades: Grades) -> list[str]:
    """The students with something that was not graded, who get no document: it would be 0."""
    found = {row.student for row in grades.rows if row.status == "not-graded"}
    for notebook in grades.notebooks:
        if any(row.status == "not-graded" for row in notebook.rows):
            found.add(notebook.student)
    return [student for student in students(grades) if student in found]


def documents(grades: Grades) -> dict[str, dict[str, Any]]:
    """Student -> that student's document; none for those of `not_judged`."""
    left_out = not_judged(grades)
    chosen = [student for student in students(grades) if student not in left_out]
    return {student: _document(grades, student) for student in chosen}


def _document(grades: Grades, student: str) -> dict[str, Any]:
    mine = [notebook for notebook in grades.notebooks if notebook.student == student]
    notes = [f"{notebook.file}: {note}" for notebook in mine for note in notebook.notes]
    rows = [row for row in grades.rows if row.student == student]
    return {
        "output": "\n".join(notes),
        "output_format": "text",
        "test_output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "execution_time": round(sum(notebook.seconds for notebook in mine)),
        "tests": [test for row in rows for test in _tests(row)],
    }


def _tests(row: Row) -> list[dict[str, Any]]:
    title = exercises.load(row.exercise).title if row.exercise else "Notebook"
    name = f"{row.chapter}: {title}" if row.chapter else title
    shown = [verdict for verdict in row.verdicts if not verdict.hidden]
    hidden = [verdict for verdict in row.verdicts if verdict.hidden]
    assert row.points is not None
    if not hidden:
        passed = row.status == "passed"
        output = _output(shown) or row.reason
        return [_test(name, row.points, row.max_points, passed, output, "visible")]
    total = sum(verdict.weight for verdict in row.verdicts)
    most = round(row.max_points * sum(verdict.weight for verdict in shown) / total, 2)
    weight = sum(verdict.weight for verdict in shown if verdict.passed)
    earned = round(row.max_points * weight / total, 2)
    rest_of = round(row.max_points - most, 2)
    rest = min(round(row.points - earned, 2), rest_of)  # rounding may leave a cent too much
    earned = round(row.points - rest, 2)
    return [
        _test(name, earned, most, _all_passed(shown), _output(shown), "visible"),
        _test(
            f"{name} (hidden checks)", rest, rest_of, _all_passed(hidden), _output(hidden), "hidden"
        ),
    ]


def _all_passed(verdicts: Sequence[Verdict]) -> bool:
    return all(verdict.passed for verdict in verdicts)


def _test(
    name: str, score: float, most: float, passed: bool, output: str, visibility: str
) -> dict[str, Any]:
    return {
        "name": name,
        "score": score,
        "max_score": most,
        "status": "passed" if passed else "failed",
        "output": output,
        "visibility": visibility,
    }


def _output(verdicts: Sequence[Verdict]) -> str:
    """One line for each case, and what was wrong."""
    lines: list[str] = []
    for verdict in verdicts:
        state = "passed" if verdict.passed else "not tried" if verdict.is_untried else "FAILED"
        lines.append(f"{state}: {verdict.case}")
        lines += [f"    {line}" for line in verdict.message.splitlines()]
    return "\n".join(lines)
