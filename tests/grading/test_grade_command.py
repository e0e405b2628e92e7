"""`labkit grade`: a class of students, some of them hostile; nothing lost, each with its reason."""

from __future__ import annotations

import argparse
import csv
import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from handed_in import START, TENSOR, Sheet
from kernels import is_alive, wait_until
from test_grade_sandbox import sleepers

from course.exercises import CHAPTERS, load
from course.grading.judge import HIDDEN_SEED, VISIBLE_SEED
from labkit.cli import Command, main

Rows = dict[tuple[str, str], dict[str, str]]
"""(student, exercise) -> the CSV's line."""

KILL = "import os\nos.kill(os.getpid(), 9)"
LOOP = "while True: pass"
FLOOD = "while True: print('x' * 1000)"
CELL_SECONDS = 15
"""Enough to import torch on a busy machine, and not too much to wait for a cell that never ends."""
LOOP_THAT_HEEDS_NOTHING = (
    "import signal, time\nfor number in (signal.SIGINT, signal.SIGTERM):\n"
    "    signal.signal(number, signal.SIG_IGN)\nwhile True:\n    try:\n        time.sleep(1)\n"
    "    except BaseException: pass"
)
ALLOCATE = "big = b'x' * 2_000_000_000"
MEDDLE = (
    "import builtins, os, shutil, sys\nimport course.grading.judge as judge\n"
    "judge.judge = judge.points = None\nshutil.rmtree(os.path.dirname(judge.__file__))\n"
    "for name in [name for name in sys.modules if name.startswith('course')]: "
    "del sys.modules[name]\n"
    "def get_ipython(): raise RuntimeError\nbuiltins.open = None"
)


def leave_behind(token: str) -> str:
    return (
        "import subprocess, threading, time\n"
        f"subprocess.Popen(['sleep', {token!r}], start_new_session=True, env={{}})\n"
        f"subprocess.Popen('(setsid sleep {token} &) &', shell=True)\n"
        "threading.Thread(target=time.sleep, args=(1e6,)).start()"
    )


def grade(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labkit", "grade", str(root), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


def read_rows(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    rows = {(line["student"], line["exercise"]): line for line in lines}
    assert len(rows) == len(lines)
    return rows


def points(rows: Rows, student: str) -> list[float]:
    return [float(row["points"]) for (name, _), row in rows.items() if name == student]


def reasons(rows: Rows, student: str) -> str:
    return "\n".join(row["reason"] for (name, _), row in rows.items() if name == student)


def notes(rows: Rows, student: str) -> str:
    return "\n".join(row["notes"] for (name, _), row in rows.items() if name == student)


@pytest.fixture(scope="module")
def token() -> str:
    return str(random.randint(10**7, 10**8))


@pytest.fixture(scope="module")
def small_class(tmp_path_factory, token) -> tuple[Rows, dict, subprocess.CompletedProcess[str]]:
    """Every kind of trouble once, in as few notebooks as keep the kinds apart."""
    root = tmp_path_factory.mktemp("class")
    hand_in = root / "submissions"
    first, second, third = CHAPTERS[START]
    Sheet(START).add_after(first, FLOOD).add_after(second, "input('name?')").add_after(
        third, leave_behind(token)
    ).repeat(second).hand_in(hand_in, "Ödön")
    Sheet(START).add_after(first, KILL).add_after(second, ALLOCATE).add_after(
        third, LOOP_THAT_HEEDS_NOTHING
    ).add_after(third, MEDDLE).forget_metadata().hand_in(hand_in, "eve", "my homework.ipynb")
    body = "def global_mean(comm, x):\n    "
    Sheet(START).write(
        first,
        "def all_reduce_by_hand(comm, x):\n    import os\n    "
        + leave_behind(token).replace("\n", "\n    ")
        + "\n    os.kill(os.getpid(), 9)",
    ).write(second, body + "big = b'x' * 2_000_000_000\n    return x.mean()").write(
        third, "def find_skipper(calls):\n    " + LOOP_THAT_HEEDS_NOTHING.replace("\n", "\n    ")
    ).hand_in(hand_in, "mallory")
    Sheet(START).write(
        first, "raise ValueError('early')\ndef all_reduce_by_hand(comm, x): return x"
    ).leave_blank(second).write(third, "find_skipper = 5").hand_in(hand_in, "new")
    wrong_on_4 = (
        "\nright = global_mean\n" + body + "return x.sum() if comm.size == 4 else right(comm, x)"
    )
    late = Sheet(START).leave_blank(first).leave_blank(third)
    late.write(second, late.source(second) + wrong_on_4).hand_in(hand_in, "new", "late (1).ipynb")
    (hand_in / "broken").mkdir()
    (hand_in / "broken" / f"{TENSOR}.ipynb").write_text("not json")
    (hand_in / "folder" / f"{START}.ipynb").mkdir(parents=True)
    (hand_in / "nothing").mkdir()
    files = {name: root / f"out.{name}" for name in ("csv", "json")}
    options = [text for name, file in files.items() for text in (f"--{name}", str(file))]
    limits = ("--cell-timeout", str(CELL_SECONDS), "--jobs", "2", "--seed", str(HIDDEN_SEED))
    done = grade(hand_in, *options, *limits)
    assert done.returncode == 0, done.stderr
    return read_rows(files["csv"]), json.loads(files["json"].read_text()), done


@pytest.mark.timeout(600)
class TestSmallClass:
    def test_nothing_is_lost(self, small_class):
        rows, document, done = small_class
        expected = {
            (student, exercise)
            for student in ("Ödön", "eve", "mallory", "new", "folder")
            for exercise in CHAPTERS[START]
        }
        expected |= {("broken", exercise) for exercise in CHAPTERS[TENSOR]}
        students = {student for student, _ in expected} | {"nothing"}
        exercises = (*CHAPTERS[START], *CHAPTERS[TENSOR])
        assert set(rows) == {(student, name) for student in students for name in exercises}
        for key, row in rows.items():
            assert (row["status"] == "not-handed-in") == (key not in expected)
        assert all(row["reason"] for row in rows.values())
        assert not any(row["status"] == "not-graded" for row in rows.values())
        assert len(document["rows"]) == len(rows)
        assert "7 students" in done.stderr

    def test_cells_that_fail_cost_what_they_define_and_no_more(self, small_class):
        rows, _, _ = small_class
        assert sum(points(rows, "Ödön")) == 30
        told = notes(rows, "Ödön")
        assert "asks for input" in told
        assert f"(`{FLOOD}`) ran longer than {CELL_SECONDS} s and was stopped" in told
        assert "asks for input" not in reasons(rows, "Ödön"), "no matter of an exercise"
        assert "all define `global_mean`; the one that code cell" in reasons(rows, "Ödön")

    def test_cells_that_end_the_kernel_cost_what_they_define_and_no_more(self, small_class):
        rows, _, _ = small_class
        assert sum(points(rows, "eve")) == 30
        told = notes(rows, "eve")
        assert "(`import os`) ended its process with signal 9" in told
        assert "used more than 1.5 GB of memory" in told
        assert "did not heed the interrupt" in told

    def test_functions_that_misbehave_fail_with_their_own_reason(self, small_class):
        rows, _, _ = small_class
        died, allocated, looped = (rows["mallory", name] for name in CHAPTERS[START])
        assert {row["status"] for row in (died, allocated, looped)} == {"failed"}
        assert "SIGKILL" in died["reason"]
        assert "used more than 1.5 GB of memory" in allocated["reason"]
        assert "has not finished after" in looped["reason"]

    def test_what_is_not_there_says_why(self, small_class):
        rows, document, _ = small_class
        early, _, number = (rows["new", name] for name in CHAPTERS[START])
        assert "got an int, not a function" in number["reason"]
        assert (number["status"], early["status"]) == ("failed", "missing")
        assert "which defines `all_reduce_by_hand`, raised ValueError: early" in early["reason"]
        late = next(one for one in document["notebooks"] if one["file"] == "late (1).ipynb")
        assert "not written yet" in late["rows"][0]["reason"]
        assert "is not JSON" in reasons(rows, "broken")
        assert "is a folder" in reasons(rows, "folder")

    def test_of_two_notebooks_the_better_counts_and_what_is_wrong_counts_partly(self, small_class):
        rows, _, _ = small_class
        row = rows["new", CHAPTERS[START][1]]
        exercise = load(CHAPTERS[START][1])
        shown, hidden = exercise.visible(VISIBLE_SEED), exercise.hidden(HIDDEN_SEED)
        passed = sum(case.weight for case in (*shown, *hidden) if case.ranks != 4)
        earned = round(10 * passed / sum(case.weight for case in (*shown, *hidden)), 2)
        assert (row["points"], row["status"]) == (f"{earned:g}", "partial")
        files = f"{START}.ipynb and late (1).ipynb"
        assert f"from late (1).ipynb, the better of {files}" in row["reason"]
        failed, of_hidden = (sum(c.ranks == 4 for c in cases) for cases in (shown, hidden))
        assert row["reason"].startswith(f"failed {failed} of {len(shown)} checks, first `")
        assert (
            f"failed {of_hidden} of {len(hidden)} hidden checks (other seeds and sizes)"
            in (row["reason"])
        )

    def test_nothing_survives(self, small_class, token):
        assert sleepers(token) == []

    def test_the_json_says_where_it_comes_from(self, small_class):
        _, document, _ = small_class
        assert document["settings"]["hidden"] is True
        assert document["settings"]["seed"] == HIDDEN_SEED
        assert document["provenance"]["packages"]["torch"]
        assert document["stopped"] is False
        peaks = {one["student"]: one["kernel_peak_bytes"] for one in document["notebooks"]}
        assert peaks["eve"] > 1_500_000_000
        assert 0 < peaks["new"] < 1_500_000_000


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)]
)
@pytest.mark.timeout(300)
def test_stopping_it_keeps_what_is_done_and_ends_what_was_started(tmp_path, number):
    token = str(random.randint(10**7, 10**8))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / f"{START}.ipynb").write_text("not json")
    name = CHAPTERS[START][0]
    endless = Sheet(START).add_after(name, leave_behind(token) + "\n" + LOOP)
    endless.hand_in(tmp_path, "b")
    endless.hand_in(tmp_path, "c")
    out = tmp_path / "out.csv"
    out.write_text("an earlier run's")
    command = [sys.executable, "-m", "labkit", "grade", str(tmp_path), "--csv", str(out)]
    running = subprocess.Popen([*command, "--jobs", "1"], stderr=subprocess.PIPE, text=True)
    try:
        assert wait_until(lambda: len(sleepers(token)) == 1 or not is_alive(running.pid), 100)
        running.send_signal(number)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130, said
    assert said.splitlines()[-1].startswith("stopped: ")
    assert out.read_text() == "an earlier run's"
    assert "went to out.csv.partial" in said
    rows = read_rows(tmp_path / "out.csv.partial")
    assert len(rows) == 9
    assert rows["c", name]["points"] == ""
    assert f"b/{START}.ipynb: not graded" in said
    assert {row["status"] for (student, _), row in rows.items() if student == "a"} == {"unreadable"}
    others = {row["status"] for (student, _), row in rows.items() if student != "a"}
    assert others == {"not-graded"}
    assert "grading was stopped" in rows["c", name]["reason"]
    assert sleepers(token) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "there is no folder"),
        (["--csv", "nowhere/out.csv"], "there is no folder nowhere"),
        (["--chapter", "99"], "no chapter is called '99'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path, capsys, options, told):
    assert main(["grade", str(tmp_path / "missing"), *options]) == 2
    assert told in capsys.readouterr().err


def test_a_file_in_place_of_the_folder_is_refused_in_a_sentence(tmp_path, capsys):
    file = tmp_path / "notes.txt"
    file.write_text("")
    assert main(["grade", str(file)]) == 2
    assert "is a file; want a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--jobs", "0"],
        ["--memory-limit", "0.1"],
        ["--cell-timeout", "-1"],
        ["--notebook-timeout", "0"],
        ["--seed", "-1"],
    ],
)
def test_limits_that_make_no_sense_are_refused(tmp_path, capsys, options):
    with pytest.raises(SystemExit):
        main(["grade", str(tmp_path), *options])
    assert "want" in capsys.readouterr().err


def test_help_names_the_command_and_loads_no_torch():
    code = (
        "import sys\nfrom labkit.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        "raise SystemExit('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "grade submissions" in done.stdout


def cannot_be_imported() -> None:
    raise ImportError("no such thing")


def cannot_say_what_it_takes() -> Command:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        raise TypeError("no such thing")

    return Command("broken", add_arguments, lambda arguments: 0)


@pytest.mark.parametrize("load", [cannot_be_imported, cannot_say_what_it_takes])
def test_a_broken_command_of_another_package_costs_only_itself(monkeypatch, capsys, load):
    entry = SimpleNamespace(name="broken", load=load)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [entry])
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0
    said = capsys.readouterr()
    assert "broken is broken: no such thing" in said.err
    assert "doctor" in said.out
    assert "broken" not in said.out


@pytest.mark.soak
def test_twenty_submissions_with_three_hostile_ones(tmp_path):
    names = CHAPTERS[TENSOR]
    sheets = {f"solved {i}": Sheet(TENSOR) for i in range(5)}
    for i, name in enumerate(names):
        sheets[f"lacks {name}"] = Sheet(TENSOR).leave_blank(name)
        if i % 4 == 0:
            sheets[f"repeats {name}"] = Sheet(TENSOR).repeat(name)
    sheets["loops"] = Sheet(TENSOR).add_after(names[2], LOOP)
    sheets["kills"] = Sheet(TENSOR).add_after(names[4], KILL)
    sheets["allocates"] = Sheet(TENSOR).add_after(names[6], ALLOCATE)
    assert len(sheets) == 20
    for student, sheet in sheets.items():
        sheet.hand_in(tmp_path / "submissions", student)
    out = tmp_path / "out.csv"
    done = grade(tmp_path / "submissions", "--csv", str(out), "--jobs", "2")
    print(done.stderr)
    assert done.returncode == 0, done.stderr
    rows = read_rows(out)
    assert set(rows) == {(student, name) for student in sheets for name in names}
    for (student, name), row in rows.items():
        blank = student == f"lacks {name}"
        assert float(row["points"]) == (0 if blank else 10), row
        assert ("not written yet" in row["reason"]) == blank
    assert "ran longer than 30 s and was stopped" in rows["loops", names[2]]["notes"]
    assert "signal 9" in rows["kills", names[4]]["notes"]
    assert "used more than 1.5 GB" in rows["allocates", names[6]]["notes"]
