"""Fit a collective's cost model to measured points, and say how well it fits.

Errors are relative: 2 us off at 20 us weighs as much as 2 ms at 20 ms. In plain least squares the
largest messages would drown the latency, which is what decode pays for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from labkit.plan.calibration_families import FAMILIES, LAUNCHED, Family, hierarchical
from labkit.plan.cost_model import CostModel
from labkit.plan.measured_points import Point, check_points
from labkit.plan.robust_fit import (
    Predict,
    residuals,
    search,
    spread,
    standard_errors,
    student_quantile,
)

__all__ = ["Estimate", "Fit", "Point", "Residual", "calibrate", "mean_abs_error"]

TOLERANCE = 0.10
"""Mean relative error up to which a model is said to fit."""
OUTLIER_FACTOR = 1.5
"""A point is an outlier when it is this many times off, and far outside the spread of the rest."""
OUTLIER_SPREADS = 5
OUTLIER_SHARE = 0.1
"""More of them than this share of the points, and the fault is the model's."""


_HOPELESS = math.log(1000)
"""A parameter known to no better than this, in logarithms, is not known: from 0 to infinity."""


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter, in seconds or bytes per second. low, high: about 95 % of the doubt."""

    value: float
    low: float
    high: float

    @property
    def is_determined(self) -> bool:
        """Whether the points fix it to better than a factor of 3 either way."""
        return self.value / 3 < self.low and self.high < self.value * 3


@dataclass(frozen=True)
class Residual:
    """A point and what the model says of it."""

    point: Point
    model_seconds: float

    @property
    def error(self) -> float:
        """Relative to what was measured: 0.1 where the model says 10 % more."""
        return self.model_seconds / self.point.seconds - 1

    def __str__(self) -> str:
        measured, modelled = 1e6 * self.point.seconds, 1e6 * self.model_seconds
        return f"{self.point}: measured {measured:.3g} us, model {modelled:.3g} us"


@dataclass(frozen=True)
class Fit:
    """A model with the parameters that come nearest to the points, and how near.

    Attributes:
        name: the family's, as `calibrate` takes it.
        model: ready to ask.
        parameters: by name.
        mean_abs_error: relative, over all points, outliers too.
        kept_error: the same without the outliers.
        worst: the point the model misses most, outliers left out.
        outliers: set aside before the last search.
        fits: whether `kept_error` is within the tolerance, with few outliers.
        verdict: all that in sentences.
    """

    name: str
    model: CostModel
    parameters: Mapping[str, Estimate]
    mean_abs_error: float
    kept_error: float
    worst: Residual
    outliers: tuple[Residual, ...]
    fits: bool
    verdict: str


def calibrate(
    points: Iterable[Point],
    model: str = "ring",
    *,
    launch: bool = False,
    inner_size: int | None = None,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Fit the model called `model` to measured points.

    Args:
        model: a name in `labkit.plan.calibration_families.FAMILIES`, or "hierarchical".
        launch: fit a constant start besides the latency that grows with the ranks; needs two rank
            counts. For rings, trees, recursive doubling and all-to-all.
        inner_size: ranks of a group; for "hierarchical", and only there.
        tolerance: mean relative error up to which the model is said to fit.

    Raises:
        ValueError: an unknown model, a point that cannot be, or too few or too similar points; the
            message names the rule.
    """
    family, given = _family(model, launch, inner_size), list(points)
    check_points(model, family, given, inner_size)
    values = _search(family, given, family.starts(_plain(given)))
    kept, outliers = _sort_out(family, values, given)
    few = len(outliers) <= max(1, int(OUTLIER_SHARE * len(given))) and len(kept) > len(values)
    kept = kept if few else given
    if few and outliers:
        values = _search(family, kept, [values])
    fitted = family.build(*values)
    off = [_residual(fitted, point) for point in kept]
    kept_error = mean_abs_error(fitted, kept)
    fit = Fit(
        name=model,
        model=fitted,
        parameters=MappingProxyType(_estimates(family, values, kept)),
        mean_abs_error=mean_abs_error(fitted, given),
        kept_error=kept_error,
        worst=max(off, key=lambda residual: abs(residual.error)),
        outliers=tuple(_residual(fitted, point) for point in outliers),
        fits=few and kept_error <= tolerance,
        verdict="",
    )
    return replace(fit, verdict=_verdict(fit, len(given), tolerance, few))


def mean_abs_error(model: CostModel, points: Iterable[Point]) -> float:
    """The mean relative error of `model` over `points`, without a sign.

    Raises ValueError where there is no point.
    """
    errors = [abs(_residual(model, point).error) for point in points]
    if not errors:
        raise ValueError("there is no point to compare the model with; give at least one")
    return sum(errors) / len(errors)


def _residual(model: CostModel, point: Point) -> Residual:
    return Residual(point, model.seconds(point.ranks, point.payload_bytes))


def _family(model: str, launch: bool, inner_size: int | None) -> Family:
    if model == "hierarchical":
        if inner_size is None or inner_size < 2:
            raise ValueError(f"inner_size is {inner_size}; hierarchical needs groups of at least 2")
        if launch:
            raise ValueError("hierarchical has no launch to fit; leave launch out")
        return hierarchical(inner_size)
    if inner_size is not None:
        raise ValueError(f"inner_size belongs to hierarchical; {model} has none")
    if model not in FAMILIES:
        raise ValueError(
            f"there is no model called {model!r}; legal: {', '.join([*FAMILIES, 'hierarchical'])}"
        )
    if launch and model not in LAUNCHED:
        raise ValueError(
            f"the latency of {model} is flat in the number of ranks, so a launch cannot be told "
            f"from it; legal with a launch: {', '.join(LAUNCHED)}"
        )
    return LAUNCHED[model] if launch else FAMILIES[model]


def _plain(points: Sequence[Point]) -> list[tuple[int, float, float]]:
    return [(p.ranks, p.payload_bytes, p.seconds) for p in points]


def _prediction(family: Family, points: Sequence[Point]) -> Predict:
    def predict(values: Sequence[float]) -> list[float]:
        model = family.build(*values)
        return [model.seconds(p.ranks, p.payload_bytes) for p in points]

    return predict


def _search(
    family: Family, points: Sequence[Point], starts: Sequence[Sequence[float]]
) -> tuple[float, ...]:
    return search(_prediction(family, points), [p.seconds for p in points], starts).values


def _sort_out(
    family: Family, values: Sequence[float], points: Sequence[Point]
) -> tuple[list[Point], list[Point]]:
    """The points to keep, and the outliers."""
    left = residuals(_prediction(family, points)(values), [p.seconds for p in points])
    limit = max(math.log(OUTLIER_FACTOR), OUTLIER_SPREADS * spread(left))
    kept = [point for point, r in zip(points, left, strict=True) if abs(r) <= limit]
    return kept, [point for point in points if point not in kept]


def _estimates(
    family: Family, values: Sequence[float], kept: Sequence[Point]
) -> dict[str, Estimate]:
    seconds = [point.seconds for point in kept]
    errors = standard_errors(_prediction(family, kept), seconds, values)
    wide = student_quantile(max(1, len(kept) - len(values)))
    estimates = {}
    for name, value, error in zip(family.parameters, values, errors, strict=True):
        factor = math.exp(wide * error) if wide * error < _HOPELESS else math.inf
        estimates[name] = Estimate(value, value / factor, value * factor)
    return estimates


def _verdict(fit: Fit, points: int, tolerance: float, aside: bool) -> str:
    off = f"off by {fit.kept_error:.1%} on average"
    sentences = [
        f"{fit.name} fits {points} points: {off}."
        if fit.fits
        else f"{fit.name} does not fit: {off}, more than the {tolerance:.0%} allowed."
        if fit.kept_error > tolerance
        else f"{fit.name} does not fit: {len(fit.outliers)} of {points} points are outliers.",
        f"It misses most at {fit.worst}.",
    ]
    if fit.outliers:
        named = "; ".join(str(outlier) for outlier in fit.outliers)
        many = "s" * (len(fit.outliers) > 1)
        lead = f"Set aside as outlier{many}" if aside else "Far off"
        sentences.append(f"{lead}: {named}.")
    loose = [name for name, estimate in fit.parameters.items() if not estimate.is_determined]
    if loose:
        sentences.append(f"The points do not pin down {', '.join(loose)}.")
    return " ".join(sentences)
