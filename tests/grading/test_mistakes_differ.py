"""No mistake of an exercise gives what is right, or what another of its mistakes gives."""

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
    for seed in (0, 1, 2024):
        yield from exercise.visible(seed)
        yield from exercise.hidden(seed)


def returned(case: Case, mistake: Mistake) -> list[Any]:
    assert mistake.returns is not None
    return [mistake.returns(rank) for rank in range(max(case.ranks, 1))]


def same(ours: list[Any], theirs: list[Any]) -> bool:
    try:
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    except (AssertionError, TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("name", TENSOR_PARALLEL)
def test_no_mistake_returns_what_is_right(name: str):
    for case in cases(exercises.load(name)):
        right = [case.expected(rank) for rank in range(max(case.ranks, 1))]
        for mistake in case.mistakes:
            if mistake.returns is not None:
                assert not same(returned(case, mistake), right), (case.name, mistake.key)


@pytest.mark.parametrize("name", TENSOR_PARALLEL)
def test_two_mistakes_with_different_keys_return_different_things(name: str):
    for case in cases(exercises.load(name)):
        told = [mistake for mistake in case.mistakes if mistake.returns is not None]
        for one, other in combinations(told, 2):
            if one.key != other.key:
                assert not same(returned(case, one), returned(case, other)), (
                    f"{case.name}: {one.key} and {other.key} cannot be told apart"
                )


@pytest.mark.parametrize("name", TENSOR_PARALLEL)
def test_cases_are_the_same_each_time_they_are_made(name: str):
    exercise = exercises.load(name)
    for first, again in zip(cases(exercise), cases(exercise), strict=True):
        assert first.name == again.name
        for rank in range(max(first.ranks, 1)):
            assert same([dict(first.arguments(rank))], [dict(again.arguments(rank))])
            assert same([first.expected(rank)], [again.expected(rank)])


@pytest.mark.parametrize("name", TENSOR_PARALLEL)
def test_hidden_cases_are_none_of_the_visible_ones(name: str):
    exercise = exercises.load(name)
    seen = {case.name for case in exercise.visible(0)}
    assert not seen & {case.name for case in exercise.hidden(1)}
    assert len(exercise.hidden(1)) >= 3
