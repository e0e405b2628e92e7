"""The judge on real ranks: what each way to go wrong is called, and what its message names."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest
import torch
import toy_submissions as wrong
from toy_exercise import TOTAL, plain

from course.grading import rank_call
from course.grading.case_run import CaseRun, JudgePools
from course.grading.exercise import Case, Outcome
from course.grading.function_bytes import pack_function
from course.grading.judge import BUDGET, MAX_HANGS, Verdict, judge, points
from labkit.ranks.comm import Comm

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as functions of a notebook travel

Judged = Callable[..., Verdict]
SCALE = 1.0
counter: list[int] = []
weights = torch.zeros(1)


@pytest.fixture(scope="module")
def judged(judge_pools: JudgePools) -> Judged:
    """`judged(fn)`: the first verdict of a function on the visible case of the toy exercise."""
    return lambda fn, exercise=TOTAL: judge(exercise, fn, pools=judge_pools)[0]


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE


def reference(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(scaled(x))


def test_a_right_function_passes_with_its_globals_and_helpers(judge_pools: JudgePools):
    verdicts = judge(TOTAL, reference, hidden=True, pools=judge_pools)
    assert [(v.case, v.hidden) for v in verdicts] == [
        ("2 ranks", False),
        ("2 ranks", True),
        ("3 ranks", True),
    ]
    assert all(v.passed and not v.key and not v.message for v in verdicts)
    assert points(TOTAL, verdicts) == 10


def test_bytes_are_judged_as_the_function_is(judge_pools: JudgePools):
    verdicts = judge(TOTAL, pack_function(reference), pools=judge_pools)
    assert [v.passed for v in verdicts] == [True]


def test_the_function_never_runs_in_the_judging_process(judged: Judged):
    home = os.getpid()

    def tells(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        assert os.getpid() != home
        return comm.all_reduce(x.clone())

    assert judged(tells).passed


@pytest.mark.parametrize(
    ("function", "key", "named"),
    [
        (wrong.stub, "not-written", "NotImplementedError"),
        (wrong.returns_nothing, "returns-nothing", "rank 0"),
        (wrong.in_place, "changes-input", "`x`"),
        (wrong.no_reduce, "missing-reduce", "nothing adds them"),
        (wrong.mean, "mean", "not a sum"),
        (wrong.gathers, "forbidden-collective", "all_gather once"),
        (wrong.reduces_twice, "extra-collective", "all_reduce twice"),
        (wrong.never_reduces, "missing-collective", "never called all_reduce"),
        (wrong.half, "wrong-shape", "(2,)"),
        (wrong.single, "wrong-dtype", "float32"),
        (wrong.as_list, "wrong-type", "list"),
        (wrong.off_on_rank_1, "values-differ", "rank 1"),
        (wrong.raises, "raised", "RuntimeError: The size of tensor a (4)"),
        (wrong.raises_its_own, "raised", "OwnError: mine"),
        (wrong.skips, "collectives-mismatch", "rank 0 has returned without calling all_reduce"),
        (wrong.other_order, "collectives-mismatch", "all_gather"),
        (wrong.dies, "died", "SIGKILL"),
        (wrong.exits, "died", "sys.exit"),
        (wrong.lacks_x, "wrong-signature", "(comm, x)"),
        (wrong.takes_more, "wrong-signature", "'y'"),
        (wrong.generates, "wrong-type", "generator"),
        (wrong.waits, "not-a-function", "async"),
        (wrong.uses_a_lock, "cannot-be-sent", "`lock`"),
        (None, "not-a-function", "None"),
        (7, "not-a-function", "an int"),
        (torch.zeros(3), "not-a-function", "a Tensor"),
    ],
)
def test_each_way_to_go_wrong_has_its_key_and_a_telling_message(
    judged: Judged, function: Any, key: str, named: str
):
    verdict = judged(function)
    assert (verdict.passed, verdict.key) == (False, key), verdict.message
    assert named in verdict.message


def test_wrong_values_are_placed_even_where_a_mechanism_is_named(judged: Judged):
    for function in (wrong.no_reduce, wrong.never_reduces, wrong.off_on_rank_1):
        message = judged(function).message
        assert "rank " in message
        assert "shape (4,)" in message
        assert "index [" in message


def test_ranks_that_are_right_are_named(judged: Judged):
    assert "(rank 0 is right)" in judged(wrong.off_on_rank_1).message


def test_an_error_shows_the_line_and_no_frame_of_the_judge(judged: Judged):
    message = judged(wrong.raises).message
    assert "torch.ones(7)" in message
    assert os.path.basename(rank_call.__file__) not in message


def test_a_loop_ends_at_the_deadline_with_its_place(judge_pools: JudgePools):
    def loops(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        while True:
            pass

    short = replace(TOTAL, timeout=1.0)
    verdicts = judge(short, loops, hidden=True, pools=judge_pools)
    assert [v.key for v in verdicts] == ["hangs"] * 3
    assert "in loops" in verdicts[0].message
    assert "not tried" in verdicts[MAX_HANGS].message
    assert "course/grading" not in verdicts[0].message


def test_ranks_that_wait_for_each_other_are_not_tried_again_and_again(judge_pools: JudgePools):
    def ring(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        return comm.recv(x, (comm.rank + 1) % comm.size)

    verdicts = judge(TOTAL, ring, hidden=True, pools=judge_pools)
    assert {v.key for v in verdicts} == {"collectives-mismatch"}
    assert ["not tried" in v.message for v in verdicts] == [False, False, True]


def test_an_exercise_has_a_time_for_all_its_calls_together(monkeypatch: pytest.MonkeyPatch):
    def nearly_too_slow(case: Case, packed: bytes, names: Any, timeout: float, _: Any) -> CaseRun:
        returned = tuple(case.expected(rank) for rank in range(case.ranks))
        trace = SimpleNamespace(count_by_op=lambda: {"all_reduce": 1})
        return CaseRun(Outcome(returned, (trace,) * case.ranks), "", timeout)  # type: ignore[arg-type]

    monkeypatch.setattr("course.grading.judge.run", nearly_too_slow)
    many = replace(TOTAL, visible=lambda seed: TOTAL.visible(seed) * (BUDGET + 2))
    verdicts = judge(many, reference)
    assert [v.passed for v in verdicts] == [True] * BUDGET + [False] * 2
    assert {v.key for v in verdicts[BUDGET:]} == {"out-of-time"}
    assert "not tried: this exercise has used up its time" in verdicts[-1].message


def test_after_any_failure_the_next_function_is_judged_on_sound_ranks(judged: Judged):
    for function in (wrong.dies, wrong.skips, wrong.raises):
        assert not judged(function).passed
        assert judged(reference).passed


def test_globals_start_afresh_in_every_case(judge_pools: JudgePools):
    def remembers(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        counter.append(1)
        assert len(counter) == 1
        return comm.all_reduce(x.clone())

    verdicts = judge(TOTAL, remembers, hidden=True, pools=judge_pools)
    assert [v.passed for v in verdicts] == [True] * 3


def test_what_a_function_prints_is_kept_with_its_rank(
    judged: Judged, capsys: pytest.CaptureFixture[str]
):
    def prints(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        print("shape", tuple(x.shape))
        return comm.all_reduce(x.clone())

    verdict = judged(prints)
    assert verdict.passed
    assert verdict.printed == "[rank 0] shape (4,)\n[rank 1] shape (4,)\n"
    assert capsys.readouterr().out == ""


def test_a_function_that_takes_half_the_notebook_along_names_what(judged: Judged):
    global weights
    weights = torch.zeros(20 << 20)

    def uses_weights(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        return x + weights[0]

    try:
        verdict = judged(uses_weights)
    finally:
        weights = torch.zeros(1)
    assert verdict.key == "cannot-be-sent"
    assert "`weights`" in verdict.message


def test_a_stub_is_not_written_and_another_not_implemented_error_is_an_error(judged: Judged):
    def lacking(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("no kernel for this")

    assert judged(lacking).key == "raised"


def test_a_plain_function_is_told_without_ranks(judged: Judged):
    verdict = judged(lambda n: n + 2, plain(4, n=3))
    assert verdict.key == "values-differ"
    assert "rank" not in verdict.message
    assert judged(lambda n: n + 1, plain(4, n=3)).passed


def test_a_plain_function_that_fails_is_told_without_ranks(judged: Judged):
    verdict = judged(lambda n: n + "x", plain(4, n=3))
    assert verdict.key == "raised"
    assert verdict.message.startswith("the function raised TypeError")


def test_lists_handed_in_must_stay_as_they_are(judged: Judged):
    def empties(calls: list[list[int]]) -> int:
        calls[0].pop()
        return 1

    verdict = judged(empties, plain(1, calls=[[1], [2]]))
    assert verdict.key == "changes-input"
    assert "`calls`" in verdict.message


def test_nothing_that_overrides_equality_passes(judged: Judged):
    class Equal(int):
        def __eq__(self, other: object) -> bool:
            return True

        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = int.__hash__

    class EqualTensor(torch.Tensor):
        def __eq__(self, other: object) -> Any:
            return True

    def subclassed(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        return comm.all_reduce(x.clone()).sub_(1).as_subclass(EqualTensor)

    assert judged(lambda n: Equal(5), plain(4, n=3)).key == "values-differ"
    assert judged(lambda n: [Equal(5)], plain([4], n=3)).key == "values-differ"
    assert judged(subclassed).key == "wrong-type"


def test_a_result_that_cannot_travel_is_a_wrong_type(judged: Judged):
    assert judged(lambda n: threading.Lock(), plain(4, n=3)).key == "wrong-type"
    assert judged(lambda n: lambda: n, plain(4, n=3)).key == "wrong-type"
