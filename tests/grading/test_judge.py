"""The judge on real ranks: what each way to go wrong is called, and what its message names."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cloudpickle
import pytest
import torch
from toy_exercise import TOTAL, plain

from course.grading import rank_call
from course.grading.case_run import JudgePools
from course.grading.exercise import Case, Mistake, Outcome
from course.grading.function_bytes import pack_function
from course.grading.judge import MAX_HANGS, Verdict, judge, points
from labkit.ranks.comm import Comm

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as functions of a notebook travel

Judged = Callable[..., Verdict]
SCALE = 1.0
counter: list[int] = []
lock = threading.Lock()
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


def stub(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError()


def returns_nothing(comm: Comm, x: torch.Tensor) -> None:
    comm.all_reduce(x.clone())


def in_place(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x)


def mean(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()) / comm.size


def no_reduce(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return x


def gathers(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_gather(x).reshape(comm.size, -1).sum(0)


def reduces_twice(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    comm.all_reduce(x.clone())
    return comm.all_reduce(x.clone())


def never_reduces(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return x + 100


def half(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone())[:2]


def single(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()).float()


def as_list(comm: Comm, x: torch.Tensor) -> list[float]:
    return comm.all_reduce(x.clone()).tolist()


def off_on_rank_1(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    y = comm.all_reduce(x.clone())
    y[2] += comm.rank
    return y


def raises(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()) + torch.ones(7)


class OwnError(Exception):
    def __reduce__(self) -> Any:
        return os._exit, (3,)


def raises_its_own(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    raise OwnError("mine")


def skips(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()) if comm.rank else x


def other_order(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()) if comm.rank else comm.all_gather(x)


def dies(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    os.kill(os.getpid(), 9)
    return x


def exits(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    sys.exit(3)


def lacks_x(comm: Comm) -> torch.Tensor:
    return torch.zeros(4)


def takes_more(comm: Comm, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x


def generates(comm: Comm, x: torch.Tensor) -> Any:
    yield x


async def waits(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return x


def uses_a_lock(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    with lock:
        return comm.all_reduce(x.clone())


@pytest.mark.parametrize(
    ("function", "key", "named"),
    [
        (stub, "not-written", "NotImplementedError"),
        (returns_nothing, "returns-nothing", "rank 0"),
        (in_place, "changes-input", "`x`"),
        (no_reduce, "missing-reduce", "nothing adds them"),
        (mean, "mean", "not a sum"),
        (gathers, "forbidden-collective", "all_gather once"),
        (reduces_twice, "extra-collective", "all_reduce twice"),
        (never_reduces, "missing-collective", "never called all_reduce"),
        (half, "wrong-shape", "(2,)"),
        (single, "wrong-dtype", "float32"),
        (as_list, "wrong-type", "list"),
        (off_on_rank_1, "values-differ", "rank 1"),
        (raises, "raised", "RuntimeError: The size of tensor a (4)"),
        (raises_its_own, "raised", "OwnError: mine"),
        (skips, "collectives-mismatch", "rank 0 has returned without calling all_reduce"),
        (other_order, "collectives-mismatch", "all_gather"),
        (dies, "died", "SIGKILL"),
        (exits, "died", "sys.exit"),
        (lacks_x, "wrong-signature", "(comm, x)"),
        (takes_more, "wrong-signature", "'y'"),
        (generates, "wrong-type", "generator"),
        (waits, "not-a-function", "async"),
        (uses_a_lock, "cannot-be-sent", "`lock`"),
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
    for function in (no_reduce, never_reduces, off_on_rank_1):
        message = judged(function).message
        assert "rank " in message
        assert "shape (4,)" in message
        assert "index [" in message


def test_ranks_that_are_right_are_named(judged: Judged):
    assert "(rank 0 is right)" in judged(off_on_rank_1).message


def test_an_error_shows_the_line_and_no_frame_of_the_judge(judged: Judged):
    message = judged(raises).message
    assert "torch.ones(7)" in message
    assert os.path.basename(rank_call.__file__) not in message


def test_a_loop_ends_at_the_deadline_with_its_place(judge_pools: JudgePools):
    def loops(comm: Comm, x: torch.Tensor) -> torch.Tensor:
        while True:
            pass

    short = replace(TOTAL, timeout=1.0)
    verdicts = judge(short, loops, hidden=True, pools=judge_pools)
    assert [v.key for v in verdicts] == ["hangs"] * 3
    assert "while True" in verdicts[0].message
    assert "not tried" in verdicts[MAX_HANGS].message
    assert "course/grading" not in verdicts[0].message


def test_after_any_failure_the_next_function_is_judged_on_sound_ranks(judged: Judged):
    for function in (dies, skips, raises):
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


def case_with(*mistakes: Mistake, expected: float = 4.0) -> Case:
    return Case("one call", 0, lambda rank: {"n": 3}, lambda rank: expected, mistakes)


def key_of(case: Case, function: Any, pools: JudgePools) -> str:
    exercise = plain(4.0, n=3)
    made = replace(exercise, visible=lambda seed: (case,))
    return judge(made, function, pools=pools)[0].key


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
    light = Case("light", 0, lambda rank: {"n": 2}, lambda rank: 4)
    exercise = plain(1, n=1)
    both = replace(exercise, visible=lambda seed: (heavy, light))
    assert points(both, judge(both, lambda n: n, pools=judge_pools)) == 7.5
    assert points(both, judge(both, lambda n: 0, pools=judge_pools)) == 0
