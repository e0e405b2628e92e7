"""Exercise: the message size from which a two-shot all-reduce is faster than a one-shot one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from course.exercises.message_signs import raised
from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.exercise import Case, Exercise, Outcome
from labkit.plan.collectives import OneOrTwoShot, OneShot, TwoShot

MESSAGES = {
    "swapped-terms": "The two differences are taken in opposite directions, so the sign is turned. "
    "Where the curves cross, one-shot's time minus two-shot's time is 0: both terms of one model "
    "carry the same sign.",
    "meeting-point-unchecked": "Two straight lines meet somewhere unless they are parallel, and "
    "that point was returned whatever it means. It may lie at fewer than 0 bytes, or be the size "
    "from which one-shot is the faster.",
    "zero-for-never": "0 says that two-shot is the faster for every size. Here each byte costs it "
    "more than it costs one-shot, so no message is large enough.",
    "never-for-always": "Infinity says that no message is large enough. Here two-shot is never "
    "slower, from the first byte on.",
    "one-shot-sends-once": "One-shot's transfer time is that of one tensor, or of a part of it. In "
    "one shot a rank's whole tensor goes to each of the others, all over its own link.",
    "own-part-sent": "The bytes a rank sends are counted with the part that stays with it: n "
    "receivers, or n parts. Of the n ranks n-1 are others.",
    "one-of-two-shots": "Two-shot's transfer time is that of one of its shots. It sends parts to "
    "be added up, and then the sums to the others.",
    "two-shot-sends-whole-tensors": "Two-shot's transfer time is that of whole tensors to each of "
    "the others. It cuts the tensor, and only an n-th goes to each.",
    "n-forgotten": "The number of ranks has no part in the result: both transfer times are those "
    "of the tensor once, or of it once and twice. How often a rank sends how much depends on n.",
    "bandwidths-swapped": "Each model was given the other one's bandwidth.",
    "latencies-added": "The latencies were added. One is paid instead of the other, so their "
    "difference has to be won back.",
    "one-latency-only": "Only one of the two latencies is in the result. Both ways to do it wait "
    "before the first byte.",
    "wire-for-payload": "These are the bytes that a rank sends at the crossing. The size of the "
    "message is asked for, its payload.",
}


def _crossing(saved_latency: float, per_byte_1: float, per_byte_2: float) -> float:
    """Where lines cross that start `saved_latency` apart; 0: from the start on, inf: never."""
    saved = per_byte_1 - per_byte_2
    return math.inf if saved <= 0 else max(0.0, saved_latency / saved)


def _factors(n: int) -> Iterator[tuple[str, float, float]]:
    """Wrong bytes a rank sends for each byte of payload, in one-shot and in two-shot."""
    one, two = n - 1, 2 * (n - 1) / n
    yield "one-shot-sends-once", 1, two
    yield "one-shot-sends-once", one / n, two
    yield "own-part-sent", n, two
    yield "own-part-sent", one, 2
    yield "own-part-sent", n, 2
    yield "one-of-two-shots", one, two / 2
    yield "two-shot-sends-whole-tensors", one, 2 * one
    yield "n-forgotten", 1, 1
    yield "n-forgotten", 1, 2


def _returned(n: int, t1: float, b1: float, t2: float, b2: float) -> Iterator[tuple[str, Returns]]:
    for key, value in _wrong(n, t1, b1, t2, b2):
        yield key, on_every_rank(value)


def _wrong(n: int, t1: float, b1: float, t2: float, b2: float) -> Iterator[tuple[str, float]]:
    one, two = (n - 1) / b1, 2 * (n - 1) / n / b2
    right = _crossing(t2 - t1, one, two)
    if one != two:
        meeting = (t2 - t1) / (one - two)
        yield "meeting-point-unchecked", meeting
        yield "swapped-terms", -meeting
    if 0 < right < math.inf:
        yield "swapped-terms", 0.0
        yield "wire-for-payload", right * (n - 1)
        yield "wire-for-payload", right * 2 * (n - 1) / n
    if right == math.inf:
        yield "zero-for-never", 0.0
    if right == 0.0:
        yield "never-for-always", math.inf
    for key, sent_1, sent_2 in _factors(n):
        yield key, _crossing(t2 - t1, sent_1 / b1, sent_2 / b2)
    yield "bandwidths-swapped", _crossing(t2 - t1, (n - 1) / b2, 2 * (n - 1) / n / b1)
    yield "latencies-added", _crossing(t1 + t2, one, two)
    yield "one-latency-only", _crossing(t2, one, two)
    yield "one-latency-only", _crossing(t1, one, two)


def _divided_by_zero(outcome: Outcome) -> bool:
    return any(error.type_name == "ZeroDivisionError" for error in raised(outcome))


def _case(what: str, n: int, t1: float, b1: float, t2: float, b2: float) -> Case:
    def arguments(rank: int) -> Mapping[str, Any]:
        return {"n": n, "latency_1": t1, "bandwidth_1": b1, "latency_2": t2, "bandwidth_2": b2}

    both = OneOrTwoShot(OneShot(t1, b1), TwoShot(t2, b2))
    parallel = [("meeting-point-unchecked", _divided_by_zero)] if b1 * 2 == b2 * n else []
    return Case(
        name=f"{n} ranks, {what}",
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(both.crossing_bytes(n)),
        mistakes=mistakes(MESSAGES, _returned(n, t1, b1, t2, b2), parallel),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("two-shot starts later and moves less", 8, 4.1e-6, 61e9, 9.3e-6, 148e9),
        _case("a slower link", 5, 17e-6, 5.2e9, 41e-6, 11.7e9),
        _case("two-shot starts sooner", 8, 9.7e-6, 53e9, 8.2e-6, 127e9),
        _case("two-shot is slow", 6, 3.6e-6, 340e9, 8.8e-6, 29e9),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)

    def near(value: float) -> float:
        return value * random.uniform(0.97, 1.03)

    same = near(88e9)
    return (
        _case("two-shot moves less", 6, near(5e-6), near(43e9), near(11e-6), near(103e9)),
        _case("a fast link", 8, near(2.3e-6), near(180e9), near(6.1e-6), near(433e9)),
        _case("two-shot starts much sooner", 8, near(21e-6), near(37e9), near(9e-6), near(89e9)),
        _case("two-shot is very slow", 5, near(4e-6), near(410e9), near(7e-6), near(33e9)),
        _case("all speeds the same", 2, near(4e-6), same, near(7e-6), same),
    )


EXERCISE = Exercise(
    name="one_or_two_shot",
    chapter="01_collectives",
    title="Where two-shot overtakes one-shot",
    function="one_or_two_shot",
    parameters=("n", "latency_1", "bandwidth_1", "latency_2", "bandwidth_2"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
