"""Exercise: the bytes that a rank passes to a collective, and those that it sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from typing import Any

from course.exercises.tensor_cases import mistakes, on_every_rank
from course.grading.exercise import Case, Exercise, Outcome, case_weight

MESSAGES = {
    "swapped": "The two numbers have changed places: the payload comes first, then the bytes that "
    "are sent.",
    "other-payload: result": "The payload is the tensor that a rank ends with. In this operation "
    "that is another size than the tensor it passes in.",
    "other-payload: part": "The payload is the part that travels in one step. A rank passes in "
    "its whole tensor, and the operation cuts it.",
    "other-payload: all ranks": "The payload is that of all ranks together. It is what one rank "
    "passes in.",
    "whole-for-parts: alone": "One rank alone has nobody to send to, and yet bytes leave it.",
    "whole-for-parts: payload": "The bytes sent are those of the tensor that is passed in. How "
    "much goes over a rank's link follows from the steps: how many there are, and how large a "
    "part leaves in each.",
    "whole-for-parts: own part": "The bytes sent are those of all n parts of the tensor. One of "
    "them stays: no rank sends to itself, and none sends on what has come all the way round.",
    "all-ranks-bytes": "These are the bytes that all ranks send together, or those of whole "
    "tensors where n-th parts travel. The link of one rank carries what that rank sends.",
    "one-trip": "These are the bytes of one trip round the ring. In an all-reduce the parts go "
    "round once to be added up, and then the sums have to get to all ranks.",
    "counted-twice: trips": "These are the bytes of two trips. This operation adds parts up, or "
    "hands them out, and does not do one after the other.",
    "counted-twice: directions": "What a rank sends is in it twice: once as it leaves, once as "
    "the same amount arrives. What arrives uses the other direction of the link.",
    "whole-tensors": "These are the bytes of an all-reduce that sends whole tensors: to each of "
    "the others, or to a partner in each of log2(n) exchanges. A ring sends parts.",
}
"""Up to the colon the key: one way to go wrong shows differently in different operations."""

Ways = Iterator[tuple[str, float]]


def _right(op: str, whole: int, n: int) -> tuple[int, int]:
    """(payload, bytes sent) of one rank of `n`."""
    part = whole // n
    trips = 2 if op == "all_reduce" else 1
    return (part if op == "all_gather" else whole), trips * (n - 1) * part


def _payloads(op: str, whole: int, n: int) -> Ways:
    """Wrong payloads: text, value."""
    if op == "all_gather":
        yield "other-payload: result", whole
        return
    yield f"other-payload: {'result' if op == 'reduce_scatter' else 'part'}", whole / n
    yield "other-payload: all ranks", whole * n


def _sent(op: str, whole: int, n: int) -> Ways:
    """Wrong numbers of bytes sent: text, value."""
    if n == 1:
        yield from (("whole-for-parts: alone", whole), ("whole-for-parts: alone", 2 * whole))
        return
    payload, right = _right(op, whole, n)
    yield "all-ranks-bytes", n * right
    if op == "all_reduce":
        yield "whole-for-parts: payload", payload
        yield "whole-for-parts: own part", 2 * whole
        yield "one-trip", right / 2
        yield "counted-twice: directions", 2 * right
        yield "whole-tensors", (n - 1) * whole
        if n & (n - 1) == 0:
            yield "whole-tensors", (n.bit_length() - 1) * whole
        return
    yield "whole-for-parts: own part", whole
    yield "counted-twice: trips", 2 * right
    if op == "all_gather":
        yield "whole-for-parts: payload", payload


def _answer(outcome: Outcome) -> tuple[float, float] | None:
    """The pair that was returned, or None if it is none such."""
    if not outcome.returned or not isinstance(outcome.returned[0], tuple | list):
        return None
    payload, sent = outcome.returned[0]
    if not isinstance(payload, Real) or not isinstance(sent, Real):
        return None
    return float(payload), float(sent)


def _shown(op: str, whole: int, n: int) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    payload, sent = _right(op, whole, n)
    yield "swapped", _shows((sent, payload), at=(0, 1))
    for text, wrong in _payloads(op, whole, n):
        if wrong != payload:
            yield text, _shows((wrong, sent), at=(0,))
    for text, wrong in _sent(op, whole, n):
        yield text, _shows((payload, wrong), at=(1,))


def _shows(values: tuple[float, float], at: tuple[int, ...]) -> Callable[[Outcome], bool]:
    """Whether the answer is `values` `at` these places, within one (a division may be rounded)."""

    def shows(outcome: Outcome) -> bool:
        answer = _answer(outcome)
        return answer is not None and all(abs(answer[i] - values[i]) < 1 for i in at)

    return shows


def _case(op: str, whole: int, n: int) -> Case:
    def arguments(rank: int) -> Mapping[str, Any]:
        return {"op": op, "whole_bytes": whole, "n": n}

    return Case(
        name=f"{op}, {whole} B, {n} rank{'s' * (n > 1)}",
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(_right(op, whole, n)),
        mistakes=mistakes(MESSAGES, (), _shown(op, whole, n)),
        weight=case_weight(n),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("all_reduce", 8 * 9216, 8),
        _case("reduce_scatter", 5 * 1536, 5),
        _case("all_gather", 4 * 49152, 4),
        _case("all_to_all", 6 * 2816, 6),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    part = 512 + 16 * (seed % 97)
    return (
        _case("all_reduce", 6 * part, 6),
        _case("all_reduce", 1024 + part, 1),
        _case("reduce_scatter", 16 * part, 16),
        _case("all_gather", 7 * part, 7),
        _case("all_to_all", 8 * part, 8),
    )


EXERCISE = Exercise(
    name="collective_bytes",
    chapter="01_collectives",
    title="What a rank passes in, and what it sends",
    function="collective_bytes",
    parameters=("op", "whole_bytes", "n"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
