"""Measured collectives, and which sets of them a model can be fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labkit.plan.calibration_families import Family


@dataclass(frozen=True)
class Point:
    """One measured collective. seconds: typical (a median), on the slowest rank."""

    ranks: int
    payload_bytes: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.ranks} ranks, {_size(self.payload_bytes)}"


def check_points(
    model: str, family: Family, points: Sequence[Point], inner_size: int | None
) -> None:
    """Raise ValueError, in a sentence, where `points` cannot fix the parameters of `family`."""
    for index, point in enumerate(points):
        _check_point(index, point)
    needed = len(family.parameters) + 1
    if len(points) < needed:
        raise ValueError(
            f"{len(points)} points are too few for the {len(family.parameters)} parameters of "
            f"{model}; give at least {needed}, so that one is left to check the model with"
        )
    _check_variety(model, family, points)
    if inner_size is not None:
        for place, some in (
            ("inside one group", [p for p in points if p.ranks <= inner_size]),
            ("across groups", [p for p in points if p.ranks > inner_size]),
        ):
            if len({p.payload_bytes for p in some}) < 2:
                raise ValueError(
                    f"hierarchical needs points of at least 2 sizes {place} of {inner_size} "
                    f"ranks; there are {len(some)} points {place}"
                )


def _check_variety(model: str, family: Family, points: Sequence[Point]) -> None:
    sizes = {point.payload_bytes for point in points}
    if len(sizes) < family.sizes:
        raise ValueError(
            f"all points have {_counted(len(sizes), 'size')} of payload, and {model} needs at "
            f"least {family.sizes} to tell latency from bandwidth; add sizes far apart"
        )
    counts = {point.ranks for point in points}
    if len(counts) < family.rank_counts:
        raise ValueError(
            f"all points have {_counted(len(counts), 'rank count')} ({min(counts)} ranks), and "
            f"{model} needs at least {family.rank_counts} to tell what grows with the ranks from "
            "what does not"
        )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _check_point(index: int, point: Point) -> None:
    if point.ranks < 2:
        raise ValueError(f"point {index} has {point.ranks} ranks; a collective needs at least 2")
    for name in ("payload_bytes", "seconds"):
        value = getattr(point, name)
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"point {index} has {name} {value}; it must be a number above 0")


def _size(count: float) -> str:
    """A payload for a sentence: `16 KiB` where that is exact, else bytes."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count / unit:g} {name}"
    return f"{count:.12g} B"
