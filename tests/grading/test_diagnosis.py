"""Which diagnosis a case gets when several would do, and what a verdict is worth."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import cloudpickle
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toy_exercise import plain

from course.exercises import load
from course.grading.case_run import JudgePools
from course.grading.comparison import Difference
from course.grading.exercise import Case, Mistake, Outcome
from course.grading.judge import judge, points
from labkit.ranks.comm import Comm

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def case_with(*mistakes: Mistake, expected: float = 4.0) -> Case:
    return Case("one call", 0, lambda rank: {"n": 3}, lambda rank: expected, mistakes)


def key_of(case: Case, function: Any, pools: JudgePools) -> str:
    exercise = plain(4.0, n=3)
    made = replace(exercise, visible=lambda seed: (case,))
    return judge(made, function, pools=pools)[0].key


def test_a_case_may_take_several_values_and_says_itself_what_is_wrong_with_others(
    judge_pools: JudgePools,
):
    def judged(value: Any) -> Difference | None:
        return None if value in (3, 4) else Difference("too-far", f"the result is {value}")

    case = replace(case_with(), judged=judged)
    assert [key_of(case, f, judge_pools) for f in (lambda n: n, lambda n: n + 1)] == ["", ""]
    assert key_of(case, lambda n: n + 2, judge_pools) == "too-far"


def test_a_mistake_that_changes_nothing_in_a_case_does_not_fail_it(judge_pools: JudgePools):
    same = Mistake("same", "It makes no difference here.", returns=lambda rank: 4.0)
    assert key_of(case_with(same), lambda n: 4.0, judge_pools) == ""


def test_a_mistake_that_cannot_be_made_in_a_case_is_passed_over(judge_pools: JudgePools):
    def cannot(rank: int) -> float:
        raise ValueError

    mistakes = (Mistake("cannot", "", cannot), Mistake("five", "", lambda rank: 5.0))
    assert key_of(case_with(*mistakes), lambda n: 5.0, judge_pools) == "five"


def test_a_sign_is_looked_for_in_right_values_and_in_failures_too(judge_pools: JudgePools):
    def sign(outcome: Outcome) -> bool:
        return outcome.error is not None or outcome.returned[0] == 4.0

    shown = case_with(Mistake("shown", "", shows=sign))
    assert key_of(shown, lambda n: 4.0, judge_pools) == "shown"
    assert key_of(shown, lambda n: n / 0, judge_pools) == "shown"
    assert key_of(shown, lambda n: 5.0, judge_pools) == "values-differ"


def test_a_sign_that_chokes_on_a_strange_result_is_none(judge_pools: JudgePools):
    case = case_with(Mistake("shape", "", shows=lambda outcome: outcome.returned[0].shape == (1,)))
    assert key_of(case, lambda n: "x", judge_pools) == "wrong-type"


def test_points_are_shared_out_by_weight(judge_pools: JudgePools):
    heavy = Case("heavy", 0, lambda rank: {"n": 1}, lambda rank: 1, weight=3)
    light = Case("light", 0, lambda rank: {"n": 2}, lambda rank: 4, weight=1)
    exercise = plain(1, n=1)
    both = replace(exercise, visible=lambda seed: (heavy, light))
    assert points(both, judge(both, lambda n: n, pools=judge_pools)) == 7.5
    assert points(both, judge(both, lambda n: 0, pools=judge_pools)) == 0


def test_a_changed_list_is_told_how_lists_are_copied(judge_pools: JudgePools):
    def empties(calls: list[int]) -> float:
        calls.clear()
        return 4.0

    case = Case("one call", 0, lambda rank: {"calls": [1, 2]}, lambda rank: 4.0)
    exercise = replace(plain(4.0, calls=[1, 2]), visible=lambda seed: (case,))
    (verdict,) = judge(exercise, empties, pools=judge_pools)
    assert verdict.key == "changes-input"
    assert "copy.deepcopy" in verdict.message
    assert "all_reduce" not in verdict.message


def random_row(comm: Comm, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.randn(*x.shape[:-1], len(weight), dtype=x.dtype)


def random_block(comm: Comm, x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return torch.randn(x.shape, dtype=x.dtype)


def whole_row(comm: Comm, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, weight, bias)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("row_parallel", random_row),
        ("column_parallel", random_row),
        ("mlp_block", random_block),
    ],
)
def test_random_values_are_told_no_mechanism(name: str, function: Any, judge_pools: JudgePools):
    verdicts = [one for one in judge(load(name), function, pools=judge_pools) if not one.passed]
    assert {one.key for one in verdicts} == {"values-differ", "missing-collective"}
    assert not any("values are right" in one.message for one in verdicts)


def test_right_values_without_the_collective_are_told_so(judge_pools: JudgePools):
    alone, right, garbage = judge(load("row_parallel"), whole_row, pools=judge_pools)
    assert alone.passed
    assert right.key == garbage.key == "computes-everything"
    assert "the values are right, but rank 0 never called all_reduce" in right.message
    assert "the values are right" not in garbage.message
