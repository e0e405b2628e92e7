"""Exercise: a ring's latency and bandwidth from measured all-reduces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from course.exercises.ring_fits import (
    RING,
    Answer,
    Design,
    Point,
    fit,
    fit_by_model,
    fit_logarithms,
    is_close,
    measured,
)
from course.exercises.tensor_cases import mistakes, on_every_rank
from course.grading.comparison import difference
from course.grading.exercise import Case, Exercise, Outcome

TOLERANCE = 0.1
"""Of both numbers. Points are drawn so that the right fit is well within it."""
_EXACT, _ITERATED = 1e-4, 1e-2
"""So near, relatively, is an answer to what a wrong way leads to when it went that way."""

MESSAGES = {
    "swapped": "The two numbers have changed places: alpha comes first, then beta.",
    "slope-for-bandwidth": "The second number is the time for a byte, the slope of time over "
    "bytes. A bandwidth is bytes per time.",
    "other-units": "A number is off by a power of a thousand: alpha is in microseconds and beta "
    "in bytes per microsecond, as the points are.",
    "smallest-is-latency": "The time of the smallest message was taken for pure latency. Its "
    "bytes cost time as well, and the noise of one measurement goes all into alpha.",
    "absolute-errors": "The fit makes plain errors in microseconds small, or nearly so. Of a "
    "large message 2 % are more than the whole latency: a few large messages decide everything, "
    "and alpha is whatever their noise leaves over.",
    "follows-the-outlier": "One measurement was disturbed and took several times as long, and "
    "the fit went after it. How much a point that is far too slow can pull depends on what its "
    "error is divided by, or on whether it is let in at all.",
    "alpha-per-collective": "Alpha is the latency of a whole all-reduce. A ring waits for it in "
    "every one of its steps, and there are more steps with more ranks.",
    "line-through-payload": "This is a straight line through time over payload: its latency is "
    "that of all steps together, and its bandwidth counts bytes passed in and not bytes sent.",
    "other-step-count": "Alpha is paid in another number of steps than a ring all-reduce has: "
    "n-1 to add the parts up, and as many to bring the sums round.",
    "payload-for-wire": "Beta is payload over time. Over the link go the parts that a rank sends "
    "in the ring's steps, which together are another number of bytes than the payload.",
    "own-part-sent": "The bytes are counted with the part that stays: in each trip round the "
    "ring a rank sends all parts but one.",
    "half-a-ring": "The bytes are those of one trip round the ring. An all-reduce makes two.",
    "whole-tensors": "The bytes are those of whole tensors in every step, or of all ranks "
    "together. In a ring an n-th of the tensor travels in a step.",
}

_DESIGNS: tuple[tuple[str, Design], ...] = (
    ("alpha-per-collective", Design(lambda n: 1, RING.bytes_per_byte)),
    ("line-through-payload", Design(lambda n: 1, lambda n: 1)),
    ("other-step-count", Design(lambda n: n - 1, RING.bytes_per_byte)),
    ("other-step-count", Design(lambda n: n, RING.bytes_per_byte)),
    ("other-step-count", Design(lambda n: 2 * n, RING.bytes_per_byte)),
    ("payload-for-wire", Design(RING.steps, lambda n: 1)),
    ("own-part-sent", Design(RING.steps, lambda n: 2)),
    ("half-a-ring", Design(RING.steps, lambda n: (n - 1) / n)),
    ("half-a-ring", Design(lambda n: n - 1, lambda n: (n - 1) / n)),
    ("whole-tensors", Design(RING.steps, RING.steps)),
)


def _wrong_fits(points: Sequence[Point]) -> Iterator[tuple[str, Answer, float]]:
    """What wrong designs and wrong criteria lead to, and how near an answer comes that did so."""
    for key, design in _DESIGNS:
        yield key, fit(points, design), _EXACT
    for _, design in (("", RING), *_DESIGNS):
        yield "absolute-errors", fit(points, design, power=0.0), _EXACT
    yield "absolute-errors", fit(points, power=0.5), _EXACT
    yield "follows-the-outlier", fit_logarithms(points), _ITERATED
    yield "follows-the-outlier", fit_by_model(points), _ITERATED


def _answer(outcome: Outcome) -> Answer | None:
    """The pair that was returned, or None if it is none such."""
    if not outcome.returned or not isinstance(outcome.returned[0], tuple | list):
        return None
    alpha, beta = outcome.returned[0]
    if not isinstance(alpha, Real) or not isinstance(beta, Real):
        return None
    return float(alpha), float(beta)


def _shown(
    points: Sequence[Point], truth: Answer
) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    alpha, beta = truth

    def near(wrong: Answer, within: float) -> Callable[[Outcome], bool]:
        def shows(outcome: Outcome) -> bool:
            answer = _answer(outcome)
            return (
                answer is not None
                and difference(truth, answer, TOLERANCE) is not None
                and is_close(answer, wrong, within)
            )

        return shows

    yield "swapped", near((beta, alpha), TOLERANCE)
    yield "slope-for-bandwidth", near((alpha, 1 / beta), TOLERANCE)
    for in_alpha in (1.0, 1e-3, 1e-6):
        for in_beta in (1e6, 1e3, 1.0, 1e-3, 1e-6):
            yield "other-units", near((alpha * in_alpha, beta * in_beta), TOLERANCE)
    yield "smallest-is-latency", _smallest_is_latency(points)
    for key, wrong, within in _wrong_fits(points):
        yield key, near(wrong, within)


def _smallest_is_latency(points: Sequence[Point]) -> Callable[[Outcome], bool]:
    """Whether alpha is all the time of one of the smallest messages, over its steps."""
    smallest = min(size for _, size, _ in points)
    read_off = [t / RING.steps(n) for n, size, t in points if size == smallest]

    def shows(outcome: Outcome) -> bool:
        answer = _answer(outcome)
        return answer is not None and any(abs(answer[0] / alpha - 1) < 1e-6 for alpha in read_off)

    return shows


def _tells(points: Sequence[Point], truth: Answer, *, stalls: bool) -> bool:
    """Whether the right fit is well within the tolerance, and fits by other errors far out."""
    right = is_close(fit(points), truth, 0.6 * TOLERANCE)
    drowned = abs(fit(points, power=0.0)[0] / truth[0] - 1) > 3 * TOLERANCE
    pulled = [fit_logarithms(points), fit_by_model(points)] if stalls else []
    return right and drowned and not any(is_close(f, truth, 2 * TOLERANCE) for f in pulled)


def _case(ranks: tuple[int, ...], truth: Answer, seed: int, *, stalls: bool = False) -> Case:
    points = measured(
        ranks,
        truth,
        seed,
        sizes=12 if len(ranks) == 1 else 6,
        repeats=2 if stalls else 1,
        stalls=stalls,
        wanted=lambda points: _tells(points, truth, stalls=stalls),
    )

    def arguments(rank: int) -> Mapping[str, Any]:
        return {"points": list(points)}

    spelt = " or ".join(map(str, ranks))
    return Case(
        name=f"{len(points)} points of {spelt} ranks{', one disturbed' if stalls else ''}",
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(truth),
        mistakes=mistakes(MESSAGES, (), _shown(points, truth)),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case((4,), (8.23, 263.0), seed),
        _case((3, 5, 8), (5.37, 1914.0), seed + 1),
        _case((6,), (12.64, 741.0), seed + 2, stalls=True),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    near = 1 + seed % 29 / 100
    return (
        _case((8,), (6.41 * near, 11270.0 / near), seed),
        _case((2, 4, 6), (21.3 / near, 318.0 * near), seed + 1),
        _case((5,), (9.57 * near, 2630.0), seed + 2, stalls=True),
        _case((3, 7), (14.8, 877.0 * near), seed + 3),
    )


EXERCISE = Exercise(
    name="fit_alpha_beta",
    chapter="01_collectives",
    title="Latency and bandwidth from measurements",
    function="fit_alpha_beta",
    parameters=("points",),
    points=10,
    visible=_visible,
    hidden=_hidden,
    tolerance=TOLERANCE,
)
