"""Each mistake shows in some visible case, and where two of them show they can be told apart."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from course import exercises
from course.grading.comparison import difference
from course.grading.exercise import Case, Mistake
from course.grading.plain_data import plain

NAMES = (
    "all_reduce_by_hand",
    "mean_of_uneven_parts",
    "find_the_skipper",
    "ring_reduce_scatter",
    "ring_all_gather",
    "recursive_doubling",
    "fixed_order_sum",
    "one_or_two_shot",
    "fix_a_deadlock",
    "vocab_ranges",
    "vocab_argmax",
    "vocab_log_softmax",
    "kv_bytes_per_token",
    "kv_capacity",
    "legal_tp_degrees",
    "decode_step_terms",
    "where_tp_stops_paying",
    "tp8_or_replicas",
    "pad_for_int4",
    "read_engine_log",
)
SEEDS = (0, 1, 2024)


def returned(case: Case, mistake: Mistake) -> list[Any] | None:
    """What each rank would return; None where the mistake cannot be made or changes nothing."""
    if mistake.returns is None:
        return None
    ranks = range(max(case.ranks, 1))
    try:
        made = [plain(mistake.returns(rank)) for rank in ranks]
    except ValueError:
        return None
    right = [plain(case.expected(rank)) for rank in ranks]
    return None if same(made, right) else made


def same(ours: list[Any], theirs: list[Any]) -> bool:
    return difference(ours, theirs, 1e-9) is None


def shown(case: Case) -> Iterator[tuple[str, list[Any]]]:
    """Keys of the mistakes that show in a case, each with what it returns."""
    for mistake in case.mistakes:
        made = returned(case, mistake)
        if made is not None:
            yield mistake.key, made


@pytest.mark.parametrize("name", NAMES)
def test_every_mistake_that_returns_something_shows_in_a_visible_case(name: str):
    cases = exercises.load(name).visible(0)
    known = {m.key for case in cases for m in case.mistakes if m.returns is not None}
    assert known - {key for case in cases for key, _ in shown(case)} == set()


@pytest.mark.parametrize("name", NAMES)
def test_mistakes_that_show_in_one_case_return_different_things(name: str):
    exercise = exercises.load(name)
    for case in (*exercise.visible(0), *(c for seed in SEEDS for c in exercise.hidden(seed))):
        for (key, ours), (other, theirs) in combinations(shown(case), 2):
            assert key == other or not same(ours, theirs), f"{case.name}: {key} and {other}"
