"""The grader graded: references pass, stubs are not written, each wrong solution gets its key.

Every run takes the references, the stubs and a tenth of the wrong solutions, another one each day
(`LABKIT_BANK_TENTH`, 0 to 9, picks it; `all` takes the whole bank, as `make soak` does).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import cloudpickle
import pytest
from solved_notebooks import EXERCISES, SOLUTIONS, functions

from course.exercises import CHAPTERS, load, names
from course.grading.case_run import JudgePools
from course.grading.judge import HIDDEN_SEED, judge

Function = Callable[..., Any]

EXERCISE_NAMES = [(chapter, name) for chapter, found in CHAPTERS.items() for name in found]
MIN_KEYS = 3

exercises = pytest.mark.parametrize(
    ("chapter", "name"), EXERCISE_NAMES, ids=[name for _, name in EXERCISE_NAMES]
)


def bank(name: str) -> dict[str, list[Function]]:
    """Key -> wrong solutions of an exercise. They travel to the ranks as a student's do."""
    module = importlib.import_module(f"tests.grading.bank.{name}")
    cloudpickle.register_pickle_by_value(module)
    wrong: dict[str, list[Function]] = module.WRONG
    return wrong


def entries() -> Iterator[tuple[str, str, Function]]:
    """Every wrong solution there is: exercise, key, function."""
    for name in names():
        for key, wrong in bank(name).items():
            for function in wrong:
                yield name, key, function


def tenth() -> str:
    """Which part of the bank this run takes: "0" to "9", or "all"."""
    today = datetime.now(UTC).date().toordinal()
    return os.environ.get("LABKIT_BANK_TENTH", str(today % 10))


def part_of_bank(part: str) -> list[tuple[str, str, Function]]:
    whole = list(entries())
    return whole if part == "all" else whole[int(part) :: 10]


def misjudged(wrong: tuple[str, str, Function], pools: JudgePools) -> str:
    """What is not as it should be with the verdicts on a wrong solution; "" when all is well.

    It must fail somewhere, and wherever it fails get its own key: visible or hidden cases.
    """
    name, key, function = wrong
    verdicts = judge(load(name), function, hidden=True, pools=pools)
    keys = {verdict.key for verdict in verdicts if not verdict.passed}
    seen = {verdict.key for verdict in verdicts if not verdict.passed and not verdict.hidden}
    if keys == {key} and seen:
        return ""
    label = f"{name}: {function.__name__} should get {key!r}"
    if not seen:
        return f"{label}, and passes every visible case"
    told = "\n".join(f"  {v.case}: [{v.key}] {v.message}" for v in verdicts if not v.passed)
    return f"{label} and nothing else; it got\n{told}"


def missed(chapter: str, name: str, pools: JudgePools, seed: int) -> list[str]:
    """The cases that an exercise's reference does not pass."""
    reference = functions(SOLUTIONS, chapter)[name]
    verdicts = judge(load(name), reference, hidden=True, seed=seed, pools=pools)
    return [f"{v.case}: [{v.key}] {v.message}" for v in verdicts if not v.passed]


@exercises
def test_every_reference_passes_visible_and_hidden_cases(
    chapter: str, name: str, judge_pools: JudgePools
):
    assert missed(chapter, name, judge_pools, HIDDEN_SEED) == []


@exercises
def test_every_untouched_stub_is_not_written(chapter: str, name: str, judge_pools: JudgePools):
    stub = functions(EXERCISES, chapter)[name]
    assert {v.key for v in judge(load(name), stub, pools=judge_pools)} == {"not-written"}


@exercises
def test_every_exercise_has_three_kinds_of_wrong_solutions(chapter: str, name: str):
    wrong = bank(name)
    assert len(wrong) >= MIN_KEYS
    assert all(wrong.values())


@exercises
def test_every_mistake_an_exercise_knows_is_in_the_bank(chapter: str, name: str):
    exercise = load(name)
    known = {m.key for c in (*exercise.visible(0), *exercise.hidden(1)) for m in c.mistakes}
    assert known - set(bank(name)) == set()


def test_wrong_solutions_of_todays_tenth_get_their_own_key(judge_pools: JudgePools):
    chosen = part_of_bank(tenth())
    assert chosen
    assert [told for wrong in chosen if (told := misjudged(wrong, judge_pools))] == []


def test_ten_tenths_are_the_whole_bank_once():
    whole = part_of_bank("all")
    parts = [wrong for part in range(10) for wrong in part_of_bank(str(part))]
    assert sorted(map(id, (w[2] for w in parts))) == sorted(map(id, (w[2] for w in whole)))


@pytest.mark.soak
@exercises
def test_every_reference_passes_whatever_the_seed(chapter: str, name: str, judge_pools: JudgePools):
    for seed in range(20):
        assert missed(chapter, name, judge_pools, seed) == [], f"seed {seed}"


@pytest.mark.soak
@pytest.mark.parametrize("name", names())
def test_every_wrong_solution_gets_its_own_key(name: str, judge_pools: JudgePools):
    chosen = [wrong for wrong in part_of_bank("all") if wrong[0] == name]
    assert [told for wrong in chosen if (told := misjudged(wrong, judge_pools))] == []
