"""Many notebooks: whose each is, what stopping leaves, and what the files hold on the way."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from handed_in import START, Sheet

from course.exercises import CHAPTERS, load
from course.grading import batch, notebook_grader
from course.grading.batch import Progress, grade
from course.grading.checking import Checker, Judged, _with_memory
from course.grading.collector import Collection
from course.grading.judge import Verdict
from course.grading.kernel_session import Taken
from course.grading.notebook_grader import Settings, grade_notebook
from course.grading.sandbox import Ending
from course.grading.submission import Submission, find_submissions
from course.grading.workshop import Workshop
from labkit.cli import main

NAMES = CHAPTERS[START]


@pytest.fixture
def workshop():
    started = Workshop()
    yield started
    started.close()


def unreadable(root: Path, *students: str) -> Path:
    """A class whose notebooks are graded in no time."""
    for student in students:
        (root / student).mkdir(parents=True)
        (root / student / f"{START}.ipynb").write_text("not json")
    return root


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_where_no_folder_holds_a_notebook_each_file_is_a_student_of_its_name(tmp_path):
    for name in ("bob.ipynb", "alice.ipynb", ".alice.ipynb", "list.txt"):
        (tmp_path / name).write_text("not json")
    (tmp_path / "pictures").mkdir()
    found, students = find_submissions(tmp_path)
    assert [(one.student, one.name) for one in found] == [
        ("alice", "alice.ipynb"),
        ("bob", "bob.ipynb"),
    ]
    assert students == ["alice", "bob", "pictures"]
    told = grade(tmp_path, Settings()).notebooks[0].notes
    assert told == ("The file lies in no student's folder, so its name is taken for the student's",)


def stop_at_once(progress: Progress) -> None:
    raise BrokenPipeError("nobody reads")


def test_files_that_are_nobodys_are_kept_apart_whenever_it_stops(tmp_path):
    unreadable(tmp_path, "ada")
    for name in ("stray.ipynb", "other.ipynb"):
        nbformat.write(Sheet(START).document, tmp_path / name)
    for on_result in (stop_at_once, lambda progress: None):
        rows = grade(tmp_path, Settings(), on_result).rows
        assert [row.exercise for row in rows if row.student == "ada"] == list(NAMES)
        loose = [row.reason for row in rows if not row.student]
        assert len(loose) == 2
        assert "other.ipynb lies beside" in loose[0]
        assert "stray.ipynb lies beside" in loose[1]


def test_an_error_while_telling_stops_it_and_loses_nothing(tmp_path, monkeypatch):
    root = tmp_path / "class"
    unreadable(root, "ada")
    for student in ("bob", "eve"):
        Sheet(START).hand_in(root, student)
    monkeypatch.setattr(notebook_grader, "collect", None)  # nobody gets as far as that
    grades = grade(root, Settings(), stop_at_once)
    assert (grades.stopped, grades.finished) == (True, False)
    assert grades.trouble == "BrokenPipeError: nobody reads"
    assert len(grades.rows) == 3 * len(NAMES)
    assert {row.status for row in grades.rows if row.student == "ada"} == {"unreadable"}
    assert {row.reason for row in grades.rows if row.student == "eve"} == {notebook_grader.STOPPED}


def test_files_hold_what_is_done_while_the_rest_is_graded(tmp_path, monkeypatch):
    root = unreadable(tmp_path / "class", "ada", "bob", "eve")
    files = {name: tmp_path / f"out.{name}" for name in ("csv", "json")}
    partial = {name: tmp_path / f"out.{name}.partial" for name in files}
    files["csv"].write_text("an earlier run's")
    seen: list[dict[str, set[str]]] = []

    def graded(workshop: Workshop, one: Submission, settings: Settings) -> object:
        assert files["csv"].read_text() == "an earlier run's"
        if partial["csv"].exists():
            rows = csv_rows(partial["csv"])
            names = dict.fromkeys(row["student"] for row in rows)
            seen.append(
                {name: {r["status"] for r in rows if r["student"] == name} for name in names}
            )
            assert json.loads(partial["json"].read_text())["finished"] is False
            assert (tmp_path / "scope.ada.json.partial").exists()
            assert not (tmp_path / "scope.eve.json.partial").exists(), "not judged yet"
        result = grade_notebook(workshop, one, settings)
        return replace(result, rows=tuple(replace(row, status="failed") for row in result.rows))

    monkeypatch.setattr(batch, "unjudged_notebook", waiting_as_if_readable)
    monkeypatch.setattr(batch, "grade_notebook", graded)
    options = [text for name, file in files.items() for text in (f"--{name}", str(file))]
    scope = ["--gradescope", str(tmp_path / "scope.json")]
    assert main(["grade", str(root), *options, *scope, "--jobs", "1"]) == 0
    waits, done = {"not-graded"}, {"failed"}
    assert seen == [
        {"ada": done, "bob": waits, "eve": waits},
        {"ada": done, "bob": done, "eve": waits},
    ]
    assert json.loads(files["json"].read_text())["finished"] is True
    assert len(csv_rows(files["csv"])) == 3 * len(NAMES)
    assert not list(tmp_path.glob("*.partial"))


def waiting_as_if_readable(workshop: Workshop, one: Submission, *rest: object) -> object:
    rows = tuple(
        notebook_grader.unjudged_row(one.student, load(name), "not-graded", notebook_grader.WAITS)
        for name in NAMES
    )
    return notebook_grader.NotebookResult(one.student, one.name, START, rows)


def test_each_run_draws_a_seed_and_tells_it(tmp_path, capsys):
    root = unreadable(tmp_path / "class", "ada")
    seeds = []
    for options in ([], [], ["--seed", "17"]):
        assert main(["grade", str(root), "--json", str(tmp_path / "out.json"), *options]) == 2
        told = json.loads((tmp_path / "out.json.partial").read_text())
        seeds.append(told["settings"]["seed"])
        said = capsys.readouterr().err
        assert f"--seed {seeds[-1]}." in said
        assert "Nothing could be graded, so what there is went to out.json.partial" in said
    assert len(set(seeds)) == 3
    assert seeds[-1] == 17


def test_a_notebook_that_used_up_its_time_says_so_of_each_exercise(tmp_path, workshop, monkeypatch):
    taken = {load(name).function: Taken(packed=b"x") for name in NAMES}
    monkeypatch.setattr(notebook_grader, "collect", lambda *_, **__: Collection(functions=taken))
    path = Sheet(START).hand_in(tmp_path, "ada")
    one = Submission("ada", path, path.name)
    result = grade_notebook(workshop, one, Settings(notebook_timeout=1e-6))
    assert [row.exercise for row in result.rows] == list(NAMES)
    for row in result.rows:
        assert row.status == "failed"
        assert "not tried: this notebook has used up its time" in row.reason


def test_checks_that_reach_the_notebooks_limit_are_told_from_the_exercises_own(workshop):
    with Checker(workshop, 1_500_000_000, hidden=False, seed=1) as checker:
        judged = checker.judge(load(NAMES[0]), b"x", limit=0.01)
    assert judged.ran_out
    assert not judged.is_ours


@pytest.mark.parametrize("num_failures", [1, 2])
def test_the_graders_own_trouble_is_tried_once_more(workshop, monkeypatch, num_failures):
    answers = [Judged(trouble="ranks did not start", is_ours=True)] * num_failures + [Judged()] * 9
    monkeypatch.setattr(Checker, "_judge", lambda *_: answers.pop(0))
    checker = Checker(workshop, 1, hidden=False, seed=1)
    assert checker.judge(load(NAMES[0]), b"").is_ours == (num_failures == 2)
    assert len(answers) == 9 - (num_failures == 1)


def died(pid: int | None, key: str = "died") -> Verdict:
    return Verdict("total", "2 ranks", False, False, key, "killed by SIGKILL", 1, pid=pid)


def test_memory_is_blamed_in_the_case_whose_rank_was_killed_for_it():
    verdicts = (died(7), died(8), died(None, "values-differ"), died(10))
    killed = {6: Ending("memory"), 8: Ending("memory"), 9: Ending("memory")}
    told = ["memory" in one.message for one in _with_memory(verdicts, killed, 10**9)]
    assert told == [False, True, False, False]
