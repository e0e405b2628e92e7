"""How far the collective presets, the textbook's model and a spoilt fit are from recorded points.

Needs no GPU: the points were recorded elsewhere and come with labkit (captured).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.bar import ErrorBar
from labkit.plan.calibration import Point, calibrate, mean_abs_error
from labkit.plan.collective_presets import (
    COLLECTIVE_PRESETS,
    TEXTBOOK_NVLINK,
    TEXTBOOK_PCIE,
    CollectivePreset,
)
from labkit.plan.recorded_collectives import GRAPH, recorded, recorded_names

WORST_OUTLIER = "h100_sxm/sglang_graph/0.5.14/all_reduce"
"""With 8 GPUs its point at 1 KiB is ten times as slow as the ones beside it."""
UP_TO = 16 * 2**20
"""Bytes: the payloads that the presets were fitted to."""
ERROR_BAR = 0.06
SPOILING = (0.1, 10.0)
"""What one point at a time is multiplied by, to see whether the fit stays where it was."""


@dataclass(frozen=True)
class PresetError:
    """One preset's mean relative error, over all rank counts with one set of parameters."""

    name: str
    title: str
    error: float
    error_without_outliers: float
    outliers: int
    fits: bool
    by_ranks: dict[int, float]
    """The error of the parameters fitted to each rank count alone."""
    textbook: float | None
    """The textbook's error on the recorded points that come with labkit; None: there are none."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        alone = ", ".join(f"{n}: {error:.1%}" for n, error in self.by_ranks.items())
        text = f"{self.title}, {self.name.rpartition('/')[2]}: {self.error:.1%}"
        if self.outliers:
            points = "1 outlier" if self.outliers == 1 else f"{self.outliers} outliers"
            text += f" ({self.error_without_outliers:.1%} without {points})"
        text += f"; fitted to one rank count: {alone}"
        if self.textbook is not None:
            text += f"; textbook {self.textbook:.0%}"
        return text if self.fits else f"{text}; does not fit"


def preset_errors() -> list[PresetError]:
    """Every preset's error, as it was fitted to all of its points up to 16 MiB."""
    return [
        PresetError(
            name=name,
            title=preset.title,
            error=preset.joint.error,
            error_without_outliers=preset.joint.kept_error,
            outliers=len(preset.joint.outliers),
            fits=preset.joint.fits,
            by_ranks={ranks: fit.error for ranks, fit in preset.by_ranks.items()},
            textbook=_textbook_error(name, preset),
        )
        for name, preset in COLLECTIVE_PRESETS.items()
        if preset.joint is not None
    ]


def preset_bars(spoil_every: int = 1) -> list[ErrorBar]:
    """The preset of vLLM's kernel against its points, and fits with an outlier among them.

    spoil_every: spoil each n-th point only, one at a time, which takes less time.
    """
    points = in_range(recorded(GRAPH))
    error = mean_abs_error(COLLECTIVE_PRESETS[GRAPH].model, points)
    title = COLLECTIVE_PRESETS[GRAPH].title
    real = in_range(recorded(WORST_OUTLIER))
    return [
        ErrorBar(f"preset of {title} against its points up to 16 MiB", error, ERROR_BAR),
        ErrorBar(
            f"the same fitted anew with one point {SPOILING[0]:g} or {SPOILING[1]:g} times as "
            "slow, error on the points as recorded, the worst of "
            f"{len(SPOILING) * len(points[::spoil_every])} fits",
            worst_spoilt_error(points, spoil_every),
            ERROR_BAR,
        ),
        ErrorBar(
            f"{COLLECTIVE_PRESETS[WORST_OUTLIER].title}, 8 GPUs, fitted with its outlier, error "
            "on the other points",
            _error_beside_outliers(real),
            ERROR_BAR,
        ),
    ]


def in_range(points: Sequence[Point]) -> list[Point]:
    """Those that the presets cover."""
    return [point for point in points if point.payload_bytes <= UP_TO]


def worst_spoilt_error(points: Sequence[Point], spoil_every: int = 1) -> float:
    """The largest error on `points` of fits for which one of them was spoilt."""
    worst = 0.0
    for factor in SPOILING:
        for index in range(0, len(points), spoil_every):
            spoilt = list(points)
            spoilt[index] = replace(points[index], seconds=factor * points[index].seconds)
            worst = max(worst, mean_abs_error(calibrate(spoilt, "one_or_two_shot").model, points))
    return worst


def _error_beside_outliers(points: Sequence[Point]) -> float:
    fit = calibrate(points, "one_or_two_shot")
    outliers = [residual.point for residual in fit.outliers]
    if not outliers:
        raise ValueError(f"{WORST_OUTLIER} has no outlier any more: choose another series")
    return mean_abs_error(fit.model, [point for point in points if point not in outliers])


def _textbook_error(name: str, preset: CollectivePreset) -> float | None:
    if name not in recorded_names() or preset.op != "all_reduce":
        return None
    textbook = TEXTBOOK_PCIE if preset.system == "l40s" else TEXTBOOK_NVLINK
    return mean_abs_error(textbook.model, in_range(recorded(name)))
