"""`check` as a student meets it: the report, the errors in a sentence, the way out of a loop."""

from __future__ import annotations

import sys
from dataclasses import replace

import cloudpickle
import pytest
import torch
from kernels import Kernel
from toy_exercise import TOTAL

import course.exercises
from course.grading import check
from course.grading.judge import Verdict
from course.grading.notebook_check import CheckError, CheckFailed
from course.grading.report import Report
from labkit.ranks.comm import Comm

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def only_total(monkeypatch: pytest.MonkeyPatch):
    """`check("total", ...)` finds the toy exercise; nothing else says it is grading."""
    found = course.exercises.load
    monkeypatch.setattr(
        course.exercises, "load", lambda name: TOTAL if name == "total" else found(name)
    )
    monkeypatch.delenv("LABKIT_GRADING", raising=False)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


def right(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone())


def wrong(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    print("<b>partial</b>")
    return x


def asks(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    input("x?")
    return x


def test_a_solved_exercise_earns_its_points_each_time_it_is_checked():
    for _ in range(2):
        report = check("total", right)
        assert report.passed
        assert (report.points, report.max_points) == (10, 10)
        assert "1 of 1 visible checks passed; grading runs more" in str(report)
        assert "points" not in str(report), "they would look like the grade"


def test_a_miss_says_which_case_why_and_where():
    report = check("total", wrong)
    for shown in (str(report), report._repr_html_()):
        assert "0 of 1 visible checks passed" in shown
        assert "2 ranks" in shown
        assert "missing-reduce" in shown
        assert "nothing adds them" in shown
        assert "rank 0" in shown


def test_what_a_student_prints_is_shown_as_text():
    page = check("total", wrong)._repr_html_()
    assert "[rank 0] &lt;b&gt;partial&lt;/b&gt;" in page
    assert "<b>partial" not in page


def test_hidden_cases_are_checked_on_request():
    assert len(check("total", right).verdicts) == 1
    assert len(check("total", right, hidden=True).verdicts) == 3


def test_a_wrong_name_is_told_with_the_nearest_one():
    with pytest.raises(CheckError, match="did you mean 'column_parallel'"):
        check("colum_parallel", right)


def test_a_check_without_the_function_says_what_to_write():
    with pytest.raises(CheckError, match=r"want check\('row_parallel', row_parallel\)"):
        check("row_parallel")


def test_input_on_a_rank_is_told_in_a_sentence():
    assert "nobody can type on a rank" in str(check("total", asks))


def test_points_are_told_only_with_the_hidden_checks():
    shown = str(check("total", wrong, hidden=True))
    assert "0 of 3 visible and hidden checks passed, 0 of 10 points" in shown


def test_while_notebooks_are_collected_nothing_is_judged(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LABKIT_GRADING", "1")
    report = check("total", lambda: sys.exit(1))
    assert report.verdicts == ()
    assert not report.passed
    assert "graded later" in str(report)
    assert "graded later" in report._repr_html_()


@pytest.mark.parametrize("mode", ["autograde", "validate"])
def test_under_nbgrader_a_failed_check_is_an_error(monkeypatch: pytest.MonkeyPatch, mode: str):
    monkeypatch.setenv("NBGRADER_EXECUTION", mode)
    assert check("total", right).passed
    with pytest.raises(AssertionError, match="missing-reduce"):
        check("total", wrong)
    assert issubclass(CheckFailed, AssertionError)


def verdict(case: str, **more: object) -> Verdict:
    made = Verdict("total", case, False, False, "raised", "the same message", 1)
    return replace(made, **more)  # type: ignore[arg-type]


def test_a_message_is_told_once():
    shown = str(Report("total", "Total", (verdict("first"), verdict("second")), 0, 10))
    assert shown.count("the same message") == 1
    assert "as in 'first'" in shown


def test_long_output_is_cut():
    talk = "".join(f"[rank 0] line {i}\n" for i in range(500))
    shown = str(Report("total", "Total", (verdict("first", printed=talk),), 0, 10))
    assert "line 3\n" in shown
    assert "line 400" not in shown
    assert "more lines" in shown


def test_in_a_notebook_a_check_shows_the_cell_line_and_can_be_stopped(kernel: Kernel):
    kernel.run(
        "from course.grading import check\n"
        "def all_reduce_by_hand(comm, x):\n"
        "    y = x.clone()\n"
        "    return y + no_such_name\n"
    )
    failed = kernel.run("check('all_reduce_by_hand', all_reduce_by_hand)")
    assert failed.result is not None
    assert "NameError" in failed.result
    assert "return y + no_such_name" in failed.result
    assert "Cell In[" in failed.result

    kernel.run("def all_reduce_by_hand(comm, x):\n    while True:\n        pass\n")
    cell = kernel.start(
        "import sys, threading\n"
        "threading.Timer(2, print, ['running'], {'file': sys.stdout}).start()\n"
        "check('all_reduce_by_hand', all_reduce_by_hand)"
    )
    stopped = kernel.finish(cell, interrupt_at="running")
    assert stopped.error == "CheckStopped"
    assert "you stopped the check" in stopped.traceback
    assert "pool" not in stopped.traceback, "no frames of the library"

    again = kernel.run(
        "def all_reduce_by_hand(comm, x):\n    return None\n"
        "check('all_reduce_by_hand', all_reduce_by_hand)"
    )
    assert again.result is not None
    assert "returns-nothing" in again.result
