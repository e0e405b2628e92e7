"""The cost models fitted to what was measured here, one for each implementation and collective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from labkit.experiments.collective_rows import CollectiveTimes
from labkit.plan.calibration import Fit, calibrate

MODELS = {
    ("gloo", "all_reduce"): "ring",
    ("gloo", "all_gather"): "ring_all_gather",
    ("gloo", "reduce_scatter"): "ring_reduce_scatter",
    ("gloo", "all_to_all"): "all_to_all",
    ("nccl", "all_reduce"): "ring",
    ("shared memory", "all_reduce"): "one_or_two_shot",
    ("symmetric memory", "all_reduce"): "one_or_two_shot",
    ("send/recv ring", "all_reduce"): "ring",
    ("send/recv ring", "all_gather"): "ring_all_gather",
    ("send/recv ring", "reduce_scatter"): "ring_reduce_scatter",
    ("send/recv recursive doubling", "all_reduce"): "recursive_doubling",
    ("send/recv one-shot", "all_reduce"): "one_shot",
    ("send/recv two-shot", "all_reduce"): "two_shot",
    ("send/recv tree", "all_reduce"): "tree",
    ("send/recv pairwise", "all_to_all"): "all_to_all",
}
"""Implementation and collective -> the model of what it does, as `calibrate` calls it."""


@dataclass(frozen=True)
class LocalFit:
    """A fit on one number of ranks, or why there is none."""

    implementation: str
    op: str
    ranks: int
    model: str
    fit: Fit | None
    refusal: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        common = {
            "implementation": self.implementation,
            "op": self.op,
            "ranks": self.ranks,
            "model": self.model,
        }
        if self.fit is None:
            return common | {"refusal": self.refusal}
        parameters = {
            name: {"value": found.value, "low": found.low, "high": found.high}
            for name, found in self.fit.parameters.items()
        }
        return common | {
            "parameters": parameters,
            "mean_abs_error": self.fit.mean_abs_error,
            "fits": self.fit.fits,
            "verdict": self.fit.verdict,
        }

    def __str__(self) -> str:
        said = self.refusal if self.fit is None else self.fit.verdict
        return f"{self.implementation}, {self.op}, {self.ranks} ranks, {self.model}: {said}"


def local_fits(times: CollectiveTimes) -> Iterator[LocalFit]:
    """One for each implementation, collective and number of ranks that has a model.

    Rank counts are not mixed: with more ranks than cores the same figures mean something else.
    """
    for (implementation, op), model in MODELS.items():
        points = times.points(implementation, op)
        for ranks in sorted({point.ranks for point in points}):
            some = [point for point in points if point.ranks == ranks]
            try:
                fit = calibrate(some, model)
            except ValueError as error:
                yield LocalFit(implementation, op, ranks, model, None, str(error))
            else:
                yield LocalFit(implementation, op, ranks, model, fit)
