"""Latency and bandwidth from timed ring all-reduces, by several criteria: the right one and others.

A point is (ranks n, payload bytes S, microseconds t). A design says how often a ring of n pays the
latency, and how many bytes a rank sends; the time is linear in alpha and in 1 / beta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

Point = tuple[int, int, float]
Answer = tuple[float, float]
"""alpha, in microseconds; beta, in bytes per microsecond."""

NOISE = 0.02
STALL = 20.0
"""So many times as long as it should takes the measurement that is disturbed."""
_ROUNDS = 60


class Design(NamedTuple):
    """What a ring all-reduce of `n` ranks pays for: alpha and bytes, as functions of n."""

    steps: Callable[[int], float]
    bytes_per_byte: Callable[[int], float]

    def seconds(self, answer: Answer, n: int, payload: int) -> float:
        """In the unit of alpha."""
        return self.steps(n) * answer[0] + self.bytes_per_byte(n) * payload / answer[1]


RING = Design(lambda n: 2 * (n - 1), lambda n: 2 * (n - 1) / n)


def fit(points: Sequence[Point], design: Design = RING, power: float = 1.0) -> Answer:
    """Least squares of (model - measured) / measured ** power: 1: relative errors; 0: plain."""
    return _weighted(points, design, [t for _, _, t in points], [t**-power for _, _, t in points])


def fit_logarithms(points: Sequence[Point], design: Design = RING) -> Answer:
    """Least squares of log(model) - log(measured)."""
    answer = fit(points, design)
    for _ in range(_ROUNDS):
        model = [design.seconds(answer, n, size) for n, size, _ in points]
        if min(model) <= 0:
            break
        goals = [m * (1 + math.log(t / m)) for m, (_, _, t) in zip(model, points, strict=True)]
        answer = _weighted(points, design, goals, [1 / m for m in model])
    return answer


def fit_by_model(points: Sequence[Point], design: Design = RING) -> Answer:
    """Least squares of (model - measured) / model, the model's time taken from the fit before."""
    answer, times = fit(points, design), [t for _, _, t in points]
    for _ in range(_ROUNDS):
        model = [design.seconds(answer, n, size) for n, size, _ in points]
        answer = _weighted(points, design, times, [1 / m for m in model])
    return answer


def measured(
    ranks: Sequence[int],
    truth: Answer,
    seed: int,
    *,
    sizes: int = 12,
    repeats: int = 1,
    stalls: bool = False,
    wanted: Callable[[Sequence[Point]], bool],
) -> list[Point]:
    """Noisy points, `repeats` for every number of ranks and size, in no order, until `wanted`.

    The smallest size spends less time on its bytes than on latency, the largest far more.
    stalls: one of the smallest messages took STALL times as long.
    """
    random, n = Random(seed), max(ranks)
    smallest = 2 ** round(math.log2(n * truth[0] * truth[1] / 2))
    factor = 2 if len(ranks) == 1 else 4
    while True:
        points = [
            (n, size, RING.seconds(truth, n, size) * random.uniform(1 - NOISE, 1 + NOISE))
            for n in ranks
            for size in (smallest * factor**k for k in range(sizes))
            for _ in range(repeats)
        ]
        if stalls:
            n, size, seconds = points[0]
            points[0] = n, size, seconds * STALL
        random.shuffle(points)
        if wanted(points):
            return points


def is_close(answer: Answer, other: Answer, within: float) -> bool:
    """Whether both numbers of `answer` are, relative to `other`'s."""
    return all(abs(a - b) <= within * abs(b) for a, b in zip(answer, other, strict=True))


def _weighted(
    points: Sequence[Point], design: Design, goals: Iterable[float], weights: Iterable[float]
) -> Answer:
    """Least squares of weight * (model - goal); beta is infinite where bytes cost nothing."""
    aa = ab = bb = ag = bg = 0.0
    for (n, size, _), goal, weight in zip(points, goals, weights, strict=True):
        a, b, g = design.steps(n), design.bytes_per_byte(n) * size, goal
        aa, ab, bb = aa + (a * weight) ** 2, ab + a * b * weight**2, bb + (b * weight) ** 2
        ag, bg = ag + a * g * weight**2, bg + b * g * weight**2
    determinant = aa * bb - ab * ab
    alpha, per_byte = (ag * bb - bg * ab) / determinant, (aa * bg - ab * ag) / determinant
    return alpha, 1 / per_byte if per_byte else math.inf
