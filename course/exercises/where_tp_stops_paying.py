"""Exercise: the TP degree whose next doubling is not worth its GPUs, on a given link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from random import Random
from typing import Any

from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.exercise import Case, Exercise
from labkit.plan.collectives import ring_all_reduce_seconds

MESSAGES = {
    "half-the-all-reduces": "A layer is counted with one all-reduce. Attention ends in one, and "
    "the MLP in another.",
    "weights-not-divided": "Every degree reads all the weights. TP cuts them: a rank reads its "
    "part, and all ranks do so at the same time.",
    "all-reduce-divided": "The all-reduces get shorter with the degree here. The time that you are "
    "given is that of one all-reduce at that degree, already on all its ranks.",
    "no-all-reduces": "The savings are those of reading weights alone. What the ranks say to one "
    "another is a part of the step too.",
    "against-the-first": "The savings are set against the step at the smallest degree. Each "
    "doubling is a decision of its own: it starts from the step before it.",
    "over-the-new-step": "The seconds saved are divided by the step after the doubling. What is "
    "saved is a part of what there was before.",
    "seconds-not-parts": "The savings are seconds. A part is asked for: seconds saved over the "
    "seconds there were.",
    "fastest-degree": "The savings are right. The degree is where the step stops getting shorter. "
    "A doubling that saves something, and less than the part asked for, does not pay either.",
    "looks-past-the-dip": "The savings are right. The degree lies beyond a doubling that does not "
    "pay. A later one that does pay is counted from a step that you would never go to.",
    "one-doubling-too-far": "The savings are right. The degree is the one that a doubling leads to "
    "that does not pay. Stop before it.",
}

Steps = dict[int, float]


def _savings(steps: Steps) -> Steps:
    """Of each degree with a next one: the part of its step that the doubling saves."""
    degrees = list(steps)
    return {low: 1 - steps[high] / steps[low] for low, high in pairwise(degrees)}


def _climb(degrees: list[int], savings: Steps, least: float) -> int:
    """The first degree whose doubling saves less than `least`, or the last."""
    return next((d for d in degrees[:-1] if savings[d] < least), degrees[-1])


def _wrong(
    weights: float, layers: int, all_reduce: Steps, least: float
) -> Iterator[tuple[str, tuple[int, Steps]]]:
    degrees = list(all_reduce)

    def steps(part: float = 2.0) -> Steps:
        return {d: weights / d + part * layers * all_reduce[d] for d in degrees}

    def with_steps(wrong: Steps) -> tuple[int, Steps]:
        found = _savings(wrong)
        return _climb(degrees, found, least), found

    def with_savings(wrong: Steps) -> tuple[int, Steps]:
        return _climb(degrees, wrong, least), wrong

    right = steps()
    savings = _savings(right)
    yield "half-the-all-reduces", with_steps(steps(1.0))
    yield "weights-not-divided", with_steps({d: right[d] - weights / d + weights for d in degrees})
    yield (
        "all-reduce-divided",
        with_steps({d: weights / d + 2 * layers * all_reduce[d] / d for d in degrees}),
    )
    yield "no-all-reduces", with_steps({d: weights / d for d in degrees})
    pairs = list(pairwise(degrees))
    saved = {low: right[low] - right[high] for low, high in pairs}
    first = right[degrees[0]]
    yield "against-the-first", with_savings({d: s / first for d, s in saved.items()})
    yield (
        "over-the-new-step",
        with_savings({low: saved[low] / right[high] for low, high in pairs}),
    )
    yield "seconds-not-parts", with_savings(saved)
    stop = _climb(degrees, savings, least)
    yield "seconds-not-parts", (stop, saved)
    yield "against-the-first", (stop, {d: s / first for d, s in saved.items()})
    yield "fastest-degree", (_climb(degrees, savings, 0.0), savings)
    yield "fastest-degree", (min(degrees, key=lambda d: right[d]), savings)
    paying = [high for low, high in pairs if savings[low] >= least]
    yield "looks-past-the-dip", (paying[-1] if paying else degrees[0], savings)
    if stop != degrees[-1]:
        yield "one-doubling-too-far", (degrees[degrees.index(stop) + 1], savings)


def _returned(
    weights: float, layers: int, all_reduce: Steps, least: float
) -> Iterator[tuple[str, Returns]]:
    for key, value in _wrong(weights, layers, all_reduce, least):
        yield key, on_every_rank(value)


def _ring(payload: int, bandwidth: float, hop: float, degrees: tuple[int, ...]) -> Steps:
    """One all-reduce of a ring at each degree."""
    return {
        d: ring_all_reduce_seconds(payload, d, bandwidth=bandwidth, hop_latency=hop)
        for d in degrees
    }


def _case(what: str, weights: float, layers: int, all_reduce: Steps, least: float) -> Case:
    degrees = list(all_reduce)
    steps = {d: weights / d + 2 * layers * all_reduce[d] for d in degrees}
    savings = _savings(steps)

    def arguments(rank: int) -> Mapping[str, Any]:
        return {
            "weight_seconds": weights,
            "num_layers": layers,
            "all_reduce_seconds": dict(all_reduce),
            "least": least,
        }

    return Case(
        name=what,
        ranks=0,
        arguments=arguments,
        expected=on_every_rank((_climb(degrees, savings, least), savings)),
        mistakes=mistakes(MESSAGES, _returned(weights, layers, all_reduce, least)),
    )


WEIGHTS_72B = 72.7e9 * 2 / 3.35e12
"""Seconds to read a 72B model's weights, 16-bit, on one GPU of 3.35 TB/s."""
_PAYLOAD = 64 * 8192 * 2


def _table(weights: float, layers: int, steps: Mapping[int, float]) -> Steps:
    """All-reduces that make steps of these parts of the weights' seconds."""
    return {d: weights * (part - 1 / d) / (2 * layers) for d, part in steps.items()}


_DIP = {1: 1.0, 2: 0.58, 4: 0.55, 8: 0.36, 16: 0.35}
_SLOW_DIP = {1: 1.0, 2: 0.61, 4: 0.63, 8: 0.42, 16: 0.40, 32: 0.395}
_FLAT = {2: 0.55, 4: 0.33, 8: 0.30, 16: 0.28, 32: 0.283}


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("72B, NVLink", WEIGHTS_72B, 80, _ring(16384, 450e9, 2e-6, (2, 4, 8, 16)), 0.2),
        _case("72B, PCIe", WEIGHTS_72B, 80, _ring(_PAYLOAD, 25e9, 5e-6, (2, 4, 8)), 0.05),
        _case("one pair on a slow link", 0.0091, 32, _table(0.0091, 32, _DIP), 0.1),
        _case("little to gain at the end", 0.031, 64, _table(0.031, 64, _FLAT), 0.15),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)

    def near(value: float) -> float:
        return value * random.uniform(0.98, 1.02)

    weights = [near(value) for value in (0.0083, 0.043, 0.027, 0.0047)]
    tables = [
        {d: near(part) if part < 1 else part for d, part in table.items()}
        for table in (_SLOW_DIP, _FLAT)
    ]
    return (
        _case("a doubling that loses", weights[0], 28, _table(weights[0], 28, tables[0]), 0.08),
        _case("a fast link", weights[1], 80, _ring(16384, near(450e9), 1e-6, (2, 4, 8, 16)), 0.4),
        _case("flat at the end", weights[2], 48, _table(weights[2], 48, tables[1]), 0.18),
        _case("a 7B on PCIe", weights[3], 32, _ring(8192, near(25e9), 5e-6, (1, 2, 4, 8)), 0.1),
        _case("every doubling pays", near(0.4), 40, _ring(8192, 450e9, 1e-6, (1, 2, 4)), 0.3),
    )


EXERCISE = Exercise(
    name="where_tp_stops_paying",
    chapter="03_layout_planning",
    title="Where tensor parallelism stops paying",
    function="where_tp_stops_paying",
    parameters=("weight_seconds", "num_layers", "all_reduce_seconds", "least"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
