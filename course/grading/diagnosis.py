"""From an outcome to what to tell: an untouched stub, then known mistakes, then what is visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from course.grading.comparison import Difference, difference
from course.grading.exercise import Case, Mistake, Outcome
from course.grading.failure_text import explain_failure
from course.grading.plain_data import plain
from labkit.ranks.conflict import name_ranks

_ABOUT_THE_CALL = ("not-written", "not-a-function", "wrong-signature", "cannot-be-sent")
_OTHER_TYPES = ("returns-nothing", "wrong-type", "wrong-device")


@dataclass(frozen=True)
class Diagnosis:
    """Why a case failed. key: a mistake's, or a general one such as "wrong-shape"."""

    key: str
    message: str


def diagnose(case: Case, outcome: Outcome, tolerance: float) -> Diagnosis | None:
    """What is wrong with an outcome; None: nothing.

    A function that never ran properly is told so. Then the case's mistakes are tried in order:
    one with `returns` applies when every rank returned just that and not the right value. Then
    comes what is visible: collectives, type, shape, dtype, changed inputs, values.
    """
    is_plain = case.ranks == 0
    failure = explain_failure(outcome.error, is_plain) if outcome.error else None
    if failure and failure[0] in _ABOUT_THE_CALL:
        return Diagnosis(*failure)
    wrong = {} if failure else _differences(case, outcome, tolerance)
    where = failure[1] if failure else _where(wrong, case, outcome)
    if (
        not failure
        and not wrong
        and (missed := _wrong_collectives(case, outcome, values_are_right=True))
    ):
        where = missed.message
    for mistake in case.mistakes:
        if _applies(mistake, outcome, bool(wrong), tolerance):
            return Diagnosis(mistake.key, "\n".join(filter(None, [mistake.message, where])))
    if failure:
        return Diagnosis(*failure)
    return _general(case, outcome, wrong, where)


def _differences(case: Case, outcome: Outcome, tolerance: float) -> dict[int, Difference]:
    """Of each rank that returned something else than it should have."""
    if case.judged is not None:
        found = {rank: case.judged(returned) for rank, returned in enumerate(outcome.returned)}
    else:
        found = {
            rank: difference(plain(case.expected(rank)), returned, tolerance)
            for rank, returned in enumerate(outcome.returned)
        }
    return {rank: wrong for rank, wrong in found.items() if wrong is not None}


def _applies(mistake: Mistake, outcome: Outcome, is_wrong: bool, tolerance: float) -> bool:
    if mistake.shows is not None:
        try:
            return bool(mistake.shows(outcome))
        except Exception:  # a submission may return anything, which `shows` need not foresee
            return False
    if not is_wrong:
        return False
    assert mistake.returns is not None
    try:
        made = [mistake.returns(rank) for rank in range(len(outcome.returned))]
    except ValueError:
        return False
    return not any(
        difference(plain(value), returned, tolerance)
        for value, returned in zip(made, outcome.returned, strict=True)
    )


def _general(
    case: Case, outcome: Outcome, wrong: dict[int, Difference], where: str
) -> Diagnosis | None:
    """What is visible, the most telling first; the rest follows in the message."""
    key = next(iter(wrong.values())).key if wrong else ""
    result = Diagnosis(key, where) if wrong else None
    collectives = _wrong_collectives(case, outcome, values_are_right=not wrong)
    changed = None if case.may_change_inputs else _changed_input(outcome, case)
    in_order = [collectives, result, changed]
    if key in _OTHER_TYPES:
        in_order = [result, collectives, changed]
    found = [diagnosis for diagnosis in in_order if diagnosis is not None]
    if not found:
        return None
    return Diagnosis(found[0].key, "\n".join(diagnosis.message for diagnosis in found))


def _wrong_collectives(case: Case, outcome: Outcome, *, values_are_right: bool) -> Diagnosis | None:
    if case.collectives is None:
        return None
    right = "the values are right, but " if values_are_right else ""
    for rank, trace in enumerate(outcome.traces):
        counts = trace.count_by_op()
        for op, times in counts.items():
            if op not in case.collectives:
                told = f"called {op} {_times(times)}, and this exercise does without it"
                return Diagnosis("forbidden-collective", f"{right}rank {rank} {told}")
        for op, wanted in case.collectives.items():
            given = counts.get(op, 0)
            if given != wanted:
                key = "missing-collective" if given < wanted else "extra-collective"
                told = f"called {op} {_times(given)}" if given else f"never called {op}"
                needs = f"exactly {_times(wanted)}" if wanted else "never"
                text = f"{right}rank {rank} {told}, and each rank must call it {needs}"
                return Diagnosis(key, text)
    return None


def _changed_input(outcome: Outcome, case: Case) -> Diagnosis | None:
    for rank, names in enumerate(outcome.changed):
        if names:
            who = "the call" if case.ranks == 0 else f"on rank {rank} the call"
            if isinstance(case.arguments(rank)[names[0]], Tensor):
                how = "an in-place operation, such as all_reduce, on x.clone()"
            else:
                how = "copy.deepcopy makes one, whatever it holds"
            return Diagnosis(
                "changes-input",
                f"{who} changed its argument `{names[0]}`, which belongs to the caller: work on "
                f"a copy ({how})",
            )
    return None


def _where(wrong: dict[int, Difference], case: Case, outcome: Outcome) -> str:
    """The first rank that differs, and how; then which ranks are right."""
    if not wrong:
        return ""
    rank, first = next(iter(wrong.items()))
    if case.ranks == 0:
        return first.text
    right: Sequence[int] = [r for r in range(len(outcome.returned)) if r not in wrong]
    more = f" ({name_ranks(right)} {'are' if len(right) > 1 else 'is'} right)" if right else ""
    return f"rank {rank}: {first.text}{more}"


def _times(number: int) -> str:
    return {0: "0 times", 1: "once", 2: "twice"}.get(number, f"{number} times")
