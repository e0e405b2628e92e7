"""Each mistake of an exercise shows in a visible case, and none looks like another."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
import torch

from course import exercises
from course.grading.exercise import Case, Exercise, Mistake

TENSOR_PARALLEL = (
    "column_parallel",
    "row_parallel",
    "merged_gate_up",
    "mlp_block",
    "kv_head_owners",
    "predict_collectives",
)


def cases(exercise: Exercise) -> Iterator[Case]:
    for seed in (0, 1):
        yield from exercise.visible(seed)
        yield from exercise.hidden(seed)


def returned(case: Case, mistake: Mistake) -> list[Any]:
    assert mistake.returns is not None
    return [mistake.returns(rank) for rank in range(max(case.ranks, 1))]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
        return ours.shape == theirs.shape and torch.allclose(ours, theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)


def right(case: Case) -> list[Any]:
    return [case.expected(rank) for rank in range(max(case.ranks, 1))]


@pytest.mark.parametrize("name", TENSOR_PARALLEL)
def test_what_a_mistake_returns_is_wrong_in_a_visible_case(name: str):
    ways: dict[str, int] = Counter()
    for case in exercises.load(name).visible(0):
        told = [mistake for mistake in case.mistakes if mistake.returns is not None]
        ways.update({mistake.key: 0 for mistake in told})
        ways.update(m.key for m in told if not same(returned(case, m), right(case)))
    assert [key for key, times in ways.items() if not times] == []


@pytest.mark.parametrize("name", TENSOR_PARALLEL)
def test_two_mistakes_with_different_keys_return_different_things(name: str):
    for case in cases(exercises.load(name)):
        told = [(m.key, returned(case, m)) for m in case.mistakes if m.returns is not None]
        wrong = [(key, values) for key, values in told if not same(values, right(case))]
        for (key, values), (other_key, other_values) in combinations(wrong, 2):
            if key != other_key:
                assert not same(values, other_values), (
                    f"{case.name}: {key} and {other_key} cannot be told apart"
                )


@pytest.mark.parametrize("name", TENSOR_PARALLEL)
def test_cases_are_the_same_each_time_they_are_made(name: str):
    exercise = exercises.load(name)
    for first, again in zip(cases(exercise), cases(exercise), strict=True):
        assert first.name == again.name
        for rank in range(max(first.ranks, 1)):
            ours, theirs = first.arguments(rank), again.arguments(rank)
            assert list(ours) == list(theirs)
            assert same(list(ours.values()), list(theirs.values()))
            assert same([first.expected(rank)], [again.expected(rank)])


@pytest.mark.parametrize("name", TENSOR_PARALLEL)
def test_hidden_cases_are_none_of_the_visible_ones(name: str):
    exercise = exercises.load(name)
    seen = {case.name for case in exercise.visible(0)}
    assert not seen & {case.name for case in exercise.hidden(1)}
    assert len(exercise.hidden(1)) >= 3
