"""The graders against solutions written from the exercise notebooks alone, right and wrong.

Nobody who wrote `unseen/` had seen the cases, the mistakes that exercises know, or the bank. Every
run takes a tenth, as `test_bank.py` does; `make soak` takes all.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cloudpickle
import pytest
from test_bank import tenth
from torch import Tensor

from course.exercises import load, names
from course.grading.case_run import JudgePools
from course.grading.exercise import ONE_RANK_WEIGHT, SEVERAL_RANKS_WEIGHT, Case, Exercise
from course.grading.judge import HIDDEN_SEED, VISIBLE_SEED, Verdict, judge, points

Function = Callable[..., Any]

MIN_WRONG, MIN_RIGHT = 3, 2
WAYS = {
    "computes-everything",
    "forbidden-collective",
    "gather-in-the-middle",
    "gathered-partial-sums",
    "other-collectives",
    "other-messages",
    "reduce-in-the-middle",
    "sends-all-logits",
    "sends-too-much",
    "summed-not-gathered",
}
"""Keys that say how the numbers travelled. The result itself may be right."""
PLACES = (
    r"rank \d+: the result has shape \(.*\) and dtype \w+; .* the first at index \[",
    r"rank \d+: the result has shape \(\) and dtype \w+; 1 of 1 elements differ",
    r"^the result has shape \(.*\) and dtype \w+; .* the first at index \[",
    r"^(item \[.*\]|the result) (is|has|lacks) ",
    r"rank \d+: the result (is|has) ",
)
REASONS = (
    r" raised \w+: ",
    r"ranks wait for each other: rank \d+ in ",
    r"rank \d+ has returned without calling ",
    r"the ranks called different things as number \d+ ",
    r"a mismatch of (dtypes|shapes|sizes) in message ",
    r"the call changed its argument `",
    r"rank \d+ called \w+ \w+, and each rank must call it ",
    r"^not tried: \d+ cases before it did not end$",
)


class Entry(NamedTuple):
    exercise: str
    function: Function
    right: bool


def entries() -> Iterator[Entry]:
    """Every solution there is. They travel to the ranks as a student's do."""
    for name in names():
        module = importlib.import_module(f"tests.grading.unseen.{name}")
        cloudpickle.register_pickle_by_value(module)
        for function in module.WRONG:
            yield Entry(name, function, right=False)
        for function in module.RIGHT:
            yield Entry(name, function, right=True)


def cases(exercise: Exercise) -> tuple[Case, ...]:
    return (*exercise.visible(VISIBLE_SEED), *exercise.hidden(HIDDEN_SEED))


def misjudged(entry: Entry, pools: JudgePools) -> list[str]:
    """What is not as it should be with the verdicts on a solution, in words."""
    exercise = load(entry.exercise)
    verdicts = judge(exercise, entry.function, hidden=True, pools=pools)
    told = [
        f"{entry.exercise}: {entry.function.__name__}, {verdict.case}: "
        f"{fault}: [{verdict.key}] {verdict.message}"
        for verdict, case in zip(verdicts, cases(exercise), strict=True)
        if not verdict.passed
        for fault in (["refused"] if entry.right else faults(verdict, case))
    ]
    if not entry.right and all(verdict.passed for verdict in verdicts):
        told.append(f"{entry.exercise}: {entry.function.__name__} passes")
    if entry.right and not told:
        assert points(exercise, verdicts) == exercise.points
    return told


def faults(verdict: Verdict, case: Case) -> list[str]:
    """What a failed case's message lacks, or gives away."""
    found = []
    says = any(re.search(way, verdict.message, re.MULTILINE) for way in (*PLACES, *REASONS))
    if not says and verdict.key not in WAYS:
        found.append("names neither a place nor a reason")
    given_away = answers(case) & words(_without_own_value(verdict.message))
    if given_away:
        found.append(f"gives away {sorted(given_away)}")
    return found


def answers(case: Case) -> set[str]:
    """The case's expected values as a message could spell them, those of three digits or more."""
    spelt: set[str] = set()
    for rank in range(max(case.ranks, 1)):
        for number in numbers(case.expected(rank)):
            spelt |= {repr(number), f"{number:.6g}", f"{number:.4g}"}
    return {word for word in spelt if sum(letter.isdigit() for letter in word) > 2}


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, Tensor):
        yield from value.flatten().tolist()
    elif isinstance(value, list | tuple):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, dict):
        yield from numbers(list(value.values()))
    elif isinstance(value, int | float):
        yield value


def words(message: str) -> set[str]:
    """The numbers in a message."""
    return set(re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", message))


def _without_own_value(message: str) -> str:
    """A message without the value that the function itself returned."""
    return re.sub(r" is \S+, which is not right", " is not right", message)


def part_of(part: str) -> list[Entry]:
    whole = list(entries())
    return whole if part == "all" else whole[int(part) :: 10]


@pytest.mark.parametrize("name", names())
def test_every_exercise_has_unseen_solutions_of_both_kinds(name: str):
    mine = [entry for entry in entries() if entry.exercise == name]
    assert sum(not entry.right for entry in mine) >= MIN_WRONG
    assert sum(entry.right for entry in mine) >= MIN_RIGHT


@pytest.mark.parametrize("name", names())
def test_cases_of_one_rank_count_less_than_cases_of_several(name: str):
    """A plain function has the number of ranks, if any, among its arguments as `tp` or `n`."""
    exercise = load(name)
    for case in cases(exercise):
        told = case.arguments(0)
        ranks = case.ranks or told.get("tp", told.get("n", 2))
        assert case.weight == (ONE_RANK_WEIGHT if ranks == 1 else SEVERAL_RANKS_WEIGHT), case.name


def test_unseen_solutions_of_todays_tenth_are_judged_right(judge_pools: JudgePools):
    chosen = part_of(tenth())
    assert chosen
    assert [told for entry in chosen for told in misjudged(entry, judge_pools)] == []


@pytest.mark.soak
@pytest.mark.parametrize("name", names())
def test_unseen_solutions_are_judged_right(name: str, judge_pools: JudgePools):
    chosen = [entry for entry in entries() if entry.exercise == name]
    assert [told for entry in chosen for told in misjudged(entry, judge_pools)] == []


def test_a_message_without_a_place_or_with_the_answer_is_a_fault():
    case = Case("case", 0, lambda rank: {}, lambda rank: {"payload_bytes": 3168})
    verdict = Verdict("exercise", "case", False, False, "values-differ", "not right", 3)
    assert faults(verdict, case) == ["names neither a place nor a reason"]
    said = Verdict("exercise", "case", False, False, "x", "item ['a'] is 1, not 3168", 3)
    assert faults(said, case) == ["gives away ['3168']"]
