"""Fit positive parameters to positive measurements, by ratio: 2 % off counts the same at any size.

A residual is log(predicted / observed). Up to `SOFT` it counts as its square, beyond as its size,
so that a wild point pulls no harder than a slightly wrong one. The search is Levenberg-Marquardt
on the logarithms of the parameters, which keeps them positive. Standard library only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SOFT = 0.02
"""Relative error from which a residual counts as its size instead of its square."""

_STEP = 1e-5
_ITERATIONS = 60
_FIRST_ITERATIONS = 8
_KEPT_STARTS = 3

Predict = Callable[[Sequence[float]], list[float]]
"""Parameters -> what they predict for each observation, in order; all above 0."""


@dataclass(frozen=True)
class Search:
    """Where a search ended. values: the parameters. loss: what is left; less is better."""

    values: tuple[float, ...]
    loss: float


def search(
    predict: Predict, observed: Sequence[float], starts: Sequence[Sequence[float]]
) -> Search:
    """The parameters nearest to `observed`, from the best of several starts, all above 0."""
    targets = [math.log(value) for value in observed]
    tried = [_descend(predict, targets, start, _FIRST_ITERATIONS) for start in starts]
    best = sorted(tried, key=lambda found: found.loss)[:_KEPT_STARTS]
    ends = [_descend(predict, targets, found.values, _ITERATIONS) for found in best]
    return min(ends, key=lambda found: found.loss)


def residuals(predicted: Sequence[float], observed: Sequence[float]) -> list[float]:
    """log(predicted / observed) of each."""
    return [math.log(p / o) for p, o in zip(predicted, observed, strict=True)]


def spread(values: Sequence[float]) -> float:
    """A standard deviation around 0 that wild values do not move: from the median size."""
    return 1.4826 * statistics.median(abs(value) for value in values)


def standard_errors(
    predict: Predict, observed: Sequence[float], values: Sequence[float]
) -> list[float]:
    """Of the logarithms of the parameters, from the normal equations; infinite where none is fixed.

    They take the residuals as independent. Where a model is bent the wrong way they are not, and
    the truth is less certain than this says.
    """
    logs = [math.log(value) for value in values]
    left = residuals(predict(values), observed)
    freedom = max(1, len(observed) - len(values))
    variance = sum(r * r for r in left) / freedom
    normal = _normal(_slopes(predict, logs), [1.0] * len(observed))
    scales = [math.sqrt(normal[i][i]) for i in range(len(logs))]
    errors = []
    for index, scale in enumerate(scales):
        if scale < 1e-6:
            errors.append(math.inf)
            continue
        column = _solve(_correlation(normal, scales), [float(index == i) for i in range(len(logs))])
        errors.append(math.sqrt(max(0.0, column[index]) * variance) / scale if column else math.inf)
    return errors


def _correlation(normal: Sequence[Sequence[float]], scales: Sequence[float]) -> list[list[float]]:
    """The normal matrix with ones on its diagonal, and a little more: a direction that nothing
    fixes gets a very large variance instead of spoiling the others."""
    size = range(len(scales))
    return [
        [normal[i][j] / max(scales[i] * scales[j], 1e-30) + (i == j) * 1e-9 for j in size]
        for i in size
    ]


def student_quantile(freedom: int) -> float:
    """About how many standard errors hold 95 %, with `freedom` residuals more than parameters."""
    z = 1.959964
    first = (z**3 + z) / (4 * freedom)
    return z + first + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _descend(
    predict: Predict, targets: Sequence[float], start: Sequence[float], iterations: int
) -> Search:
    logs = [math.log(value) for value in start]
    left = _left(predict, logs, targets)
    loss, damping = _loss(left), 1e-2
    for _ in range(iterations):
        slopes = _slopes(predict, logs)
        weights = [1 / math.hypot(1, r / SOFT) for r in left]
        normal = _normal(slopes, weights)
        gradient = [
            sum(w * r * s for w, r, s in zip(weights, left, column, strict=True))
            for column in slopes
        ]
        gain = 0.0
        while damping < 1e8:
            step = _damped_step(normal, gradient, damping)
            moved = [x - max(-2.0, min(2.0, d)) for x, d in zip(logs, step, strict=True)]
            moved_left = _left(predict, moved, targets)
            gain = loss - _loss(moved_left)
            if gain > 0:
                break
            damping *= 4
        if gain <= 0:
            break
        logs, left, loss, damping = moved, moved_left, loss - gain, max(1e-9, damping / 5)
        if gain < 1e-7 * loss:
            break
    return Search(tuple(math.exp(x) for x in logs), loss)


def _damped_step(
    normal: Sequence[Sequence[float]], gradient: Sequence[float], damping: float
) -> list[float]:
    size = range(len(gradient))
    floor = 1e-9 * max(normal[i][i] for i in size) + 1e-30
    damped = [
        [normal[i][j] + (i == j) * damping * max(normal[i][i], floor) for j in size] for i in size
    ]
    return _solve(damped, gradient) or [0.0 for _ in size]


def _left(predict: Predict, logs: Sequence[float], targets: Sequence[float]) -> list[float]:
    predicted = predict([math.exp(x) for x in logs])
    return [math.log(p) - t for p, t in zip(predicted, targets, strict=True)]


def _loss(left: Sequence[float]) -> float:
    return sum(SOFT * SOFT * (math.hypot(1, r / SOFT) - 1) for r in left)


def _slopes(predict: Predict, logs: Sequence[float]) -> list[list[float]]:
    """For each parameter, how the logarithm of each prediction changes with its own."""
    here = [math.log(p) for p in predict([math.exp(x) for x in logs])]
    slopes = []
    for index in range(len(logs)):
        moved = [x + _STEP * (index == other) for other, x in enumerate(logs)]
        there = predict([math.exp(x) for x in moved])
        slopes.append([(math.log(p) - h) / _STEP for p, h in zip(there, here, strict=True)])
    return slopes


def _normal(slopes: Sequence[Sequence[float]], weights: Sequence[float]) -> list[list[float]]:
    return [
        [sum(w * a * b for w, a, b in zip(weights, one, two, strict=True)) for two in slopes]
        for one in slopes
    ]


def _solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """The solution of a small linear system; None where it has no single one."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) < 1e-200:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            factor = rows[row][column] / rows[column][column] if row != column else 0.0
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [rows[i][size] / rows[i][i] for i in range(size)]
