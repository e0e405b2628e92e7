"""Rows, points and files: partial credit, reasons in words, hidden checks kept from students."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from course.exercises import load
from course.grading import grade_files
from course.grading.judge import Verdict
from course.grading.results import (
    Grades,
    NotebookResult,
    Row,
    counting_rows,
    judged_row,
    one_line,
    unjudged_row,
)

EXERCISE = load("mean_of_uneven_parts")


def verdict(case: str, message: str = "", *, hidden: bool = False, weight: int = 1) -> Verdict:
    return Verdict(
        exercise=EXERCISE.name,
        case=case,
        hidden=hidden,
        passed=not message,
        key="values-differ" if message else "",
        message=message,
        weight=weight,
    )


def grades(*rows: Row, notes: tuple[str, ...] = ()) -> Grades:
    students = dict.fromkeys(row.student for row in rows)
    notebooks = tuple(
        NotebookResult(
            student=student,
            file="a.ipynb",
            chapter=EXERCISE.chapter,
            rows=tuple(row for row in rows if row.student == student),
            notes=notes,
            seconds=1.5,
        )
        for student in students
    )
    return Grades(notebooks, rows, seconds=3.0)


def test_credit_is_shared_out_by_weight():
    verdicts = (verdict("a"), verdict("b", "wrong", weight=3), verdict("c", hidden=True))
    row = judged_row("ada", EXERCISE, verdicts)
    assert (row.points, row.max_points, row.status) == (4.0, 10, "partial")


@pytest.mark.parametrize(
    ("verdicts", "status", "reason"),
    [
        ((verdict("a"), verdict("b", hidden=True)), "passed", "passed all 2 checks"),
        (
            (verdict("a"), verdict("b", "secret", hidden=True), verdict("c", hidden=True)),
            "partial",
            "passed the 1 checks of the notebook; failed 1 of 2 hidden checks "
            "(other seeds and sizes)",
        ),
        (
            (verdict("a"), verdict("b", "rank 1 differs"), verdict("c", hidden=True)),
            "partial",
            "failed 1 of 2 checks, first `b`: rank 1 differs; failed 0 of 1 hidden checks "
            "(other seeds and sizes)",
        ),
        ((verdict("a", "not written"), verdict("b", "not written")), "failed", "not written"),
        (
            (
                verdict("a", "no end"),
                verdict("b", "no end either"),
                verdict("c", "not tried: 2 cases before it did not end"),
                verdict("d", "not tried: 2 cases before it did not end", hidden=True),
            ),
            "failed",
            "failed 2 of 3 checks, 1 not tried, first `a`: no end; failed 0 of 1 hidden checks "
            "(other seeds and sizes), 1 not tried",
        ),
    ],
)
def test_reasons_are_sentences_and_keep_hidden_checks_hidden(verdicts, status, reason):
    row = judged_row("ada", EXERCISE, verdicts)
    assert (row.status, row.reason) == (status, reason)


def test_reasons_are_one_line_without_control_characters():
    assert one_line("a\n  b\x1b[31m red\x00\t c") == "a b red c"
    assert len(one_line("x" * 10_000)) < 800


def test_of_two_notebooks_the_better_result_of_each_exercise_counts():
    other = load("find_the_skipper")

    def notebook(name: str, first: str, second: str) -> NotebookResult:
        rows = (
            judged_row("ada", EXERCISE, (verdict("a", first),)),
            judged_row("ada", other, (verdict("a", second),)),
        )
        return NotebookResult("ada", name, EXERCISE.chapter, rows)

    rows = counting_rows([notebook("one.ipynb", "", "bad"), notebook("two.ipynb", "bad", "")])
    assert [row.points for row in rows] == [10, 10]
    assert "from one.ipynb, the better of one.ipynb and two.ipynb" in rows[0].reason
    assert "from two.ipynb" in rows[1].reason


def test_notebooks_with_different_rows_are_matched_by_exercise():
    other = load("find_the_skipper")
    right, wrong = verdict("a"), verdict("a", "bad")
    first = (judged_row("ada", EXERCISE, (wrong,)), judged_row("ada", other, (right,)))
    second = (judged_row("ada", other, (wrong,)), unjudged_row("ada", EXERCISE, "not-graded", "x"))
    rows = counting_rows(
        NotebookResult("ada", name, EXERCISE.chapter, rows)
        for name, rows in (("one.ipynb", first), ("two.ipynb", second), ("three.ipynb", first[1:]))
    )
    assert {row.exercise: row.points for row in rows} == {EXERCISE.name: 0, other.name: 10}
    assert len(rows) == 2
    assert rows[0].status == "failed"
    assert "from one.ipynb" in rows[0].reason
    assert "two.ipynb was not graded" in rows[0].reason


def test_notebooks_of_nobody_are_not_compared():
    row = Row("", EXERCISE.chapter, "", 0.0, 0.0, "unreadable", "lies beside")
    notebooks = [NotebookResult("", name, row.chapter, (row,)) for name in ("a.ipynb", "b.ipynb")]
    assert counting_rows(notebooks) == (row, row)


def test_csv_has_a_line_per_exercise_whatever_names_and_reasons_hold(tmp_path):
    rows = (
        unjudged_row("Ödön, the 2nd", EXERCISE, "missing", 'no "function", line\nend'),
        unjudged_row("李", EXERCISE, "missing", "lone surrogate \ud800"),
    )
    grade_files.write_csv(tmp_path / "out.csv", grades(*rows))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert tuple(first) == grade_files.COLUMNS
    assert first["student"] == "Ödön, the 2nd"
    assert first["reason"] == 'no "function", line end'
    assert (first["points"], first["max_points"]) == ("0", "10")
    assert second["student"] == "李"


def test_json_has_every_verdict(tmp_path):
    row = judged_row("ada", EXERCISE, (verdict("a", "wrong"), verdict("b", hidden=True)))
    grade_files.write_json(tmp_path / "out.json", grades(row), {"settings": {"seed": 1}})
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["settings"] == {"seed": 1}
    (exercise,) = document["notebooks"][0]["rows"]
    assert [entry["case"] for entry in exercise["verdicts"]] == ["a", "b"]
    assert document["rows"][0]["reason"] == row.reason


def gradescope(tmp_path: Path, *rows: Row, notes: tuple[str, ...] = ()) -> dict:
    (path,) = grade_files.write_gradescope(tmp_path / "results.json", grades(*rows, notes=notes))
    assert path == tmp_path / "results.json"
    return json.loads(path.read_text())


def test_gradescope_shows_students_no_hidden_check(tmp_path):
    verdicts = (verdict("a"), verdict("b", "seen"), verdict("size 7", "secret", hidden=True))
    row = judged_row("ada", EXERCISE, verdicts)
    document = gradescope(tmp_path, row, notes=("code cell 4 raised NameError",))
    shown, hidden = document["tests"]
    assert (shown["visibility"], hidden["visibility"]) == ("visible", "hidden")
    for secret in ("size 7", "secret", "hidden"):
        assert secret not in json.dumps({**shown, "visibility": ""})
        assert secret not in document["output"]
    assert "FAILED: b" in shown["output"]
    assert "secret" in hidden["output"]
    assert "NameError" in document["output"]
    assert "score" not in document
    assert document["stdout_visibility"] == "hidden"


@pytest.mark.parametrize("num_shown", [1, 2, 3])
@pytest.mark.parametrize("num_hidden", [0, 1, 2, 3, 4])
def test_gradescope_points_add_up_to_the_exercises(tmp_path, num_shown, num_hidden):
    verdicts = [verdict(str(i), "bad" * (i == 0)) for i in range(num_shown)]
    verdicts += [verdict(str(i), "bad" * (i == 1), hidden=True) for i in range(num_hidden)]
    row = judged_row("ada", EXERCISE, tuple(verdicts))
    tests = gradescope(tmp_path, row)["tests"]
    assert round(sum(test["score"] for test in tests), 2) == row.points
    assert round(sum(test["max_score"] for test in tests), 2) == 10
    assert all(0 <= test["score"] <= test["max_score"] for test in tests)


def test_gradescope_keeps_to_its_documented_fields(tmp_path):
    row = unjudged_row("ada", EXERCISE, "missing", "no function")
    document = gradescope(tmp_path, row)
    allowed = {
        "score", "execution_time", "output", "output_format", "test_output_format",
        "test_name_format", "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard",
    }  # fmt: skip
    of_a_test = {
        "score", "max_score", "status", "name", "name_format", "number", "output",
        "output_format", "tags", "visibility", "extra_data",
    }  # fmt: skip
    assert set(document) <= allowed
    (test,) = document["tests"]
    assert set(test) <= of_a_test
    assert test["status"] in ("passed", "failed")
    assert test["output"] == "no function"


def test_what_was_not_graded_is_no_zero_anywhere(tmp_path):
    rows = (
        unjudged_row("ada", EXERCISE, "missing", "x"),
        unjudged_row("bob", EXERCISE, "not-graded", "ranks did not start"),
        unjudged_row("eve", EXERCISE, "missing", "x"),
    )
    grade_files.write_csv(tmp_path / "out.csv", grades(*rows))
    with (tmp_path / "out.csv").open(newline="") as stream:
        assert [line["points"] for line in csv.DictReader(stream)] == ["0", "", "0"]
    grade_files.write_json(tmp_path / "out.json", grades(*rows), {})
    document = json.loads((tmp_path / "out.json").read_text())
    assert [row["points"] for row in document["rows"]] == [0, None, 0]
    written = grade_files.write_gradescope(tmp_path / "results.json", grades(*rows))
    assert [path.name for path in written] == ["results.ada.json", "results.eve.json"]


def test_gradescope_writes_a_file_for_each_of_several_students(tmp_path):
    rows = (unjudged_row(name, EXERCISE, "missing", "x") for name in ("ada", "Ödön"))
    written = grade_files.write_gradescope(tmp_path / "results.json", grades(*rows))
    assert [path.name for path in written] == ["results.ada.json", "results.Ödön.json"]
    assert not (tmp_path / "results.json").exists()


def test_a_file_appears_whole_or_stays_as_it_was(tmp_path, monkeypatch):
    target = tmp_path / "out.csv"
    target.write_text("before")
    row = unjudged_row("ada", EXERCISE, "missing", "x")

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        grade_files.write_csv(target, grades(row))
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_places_that_cannot_be_written_are_refused_before_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        grade_files.check_writable(tmp_path / "nowhere" / "out.csv")
    with pytest.raises(ValueError, match="is a folder"):
        grade_files.check_writable(tmp_path)


def test_a_run_that_graded_nothing_leaves_an_earlier_file_alone(tmp_path):
    file = tmp_path / "grades.csv"
    file.write_text("an earlier run\n")
    found = Row("ada", "", "", 0.0, 0.0, "unreadable", "the file is no notebook")
    assert grade_files.write_csv(file, grades(found)) == tmp_path / "grades.csv.partial"
    assert file.read_text() == "an earlier run\n"
