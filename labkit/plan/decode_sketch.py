"""A decode step on one GPU against one split over several: compute / n + all-reduces.

A slow link is always worse than a fast one. It can still beat one GPU where the compute drops a
lot, and it hurts where the compute barely drops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from labkit.plan.collectives import CostModel

HBM_BANDWIDTH = 3.35e12
"""Bytes per second of an H100 SXM's memory (its data sheet)."""
PEAK_FLOPS = 989e12
"""Of an H100 SXM in dense bf16 (its data sheet)."""


class SketchRegime(Enum):
    """What splitting a decode step over one link does, named by its value."""

    HELPS = "the split helps"
    STILL_WINS = "the link is slow, but the split still wins"
    HURTS = "the split hurts"

    @property
    def sentence(self) -> str:
        """Why the regime is what it is, for a reader."""
        return _SKETCH_SENTENCES[self]


_SKETCH_SENTENCES = {
    SketchRegime.HELPS: (
        "The compute drops by more than the all-reduces cost, and they are the smaller part of the "
        "split step."
    ),
    SketchRegime.STILL_WINS: (
        "The split step waits longer for the all-reduces than it computes, and is still shorter "
        "than one GPU's: the compute drops by more than they cost."
    ),
    SketchRegime.HURTS: (
        "The all-reduces cost as much as the drop in compute saves, or more: one GPU is at least "
        "as fast."
    ),
}


@dataclass(frozen=True)
class Sketch:
    """One decode step on one GPU, and split over `tp` with two all-reduces a layer; modelled.

    one_gpu_seconds, compute_seconds: compute of the whole step and of the split one.
    payload_bytes: of one of the `all_reduces`; batch x hidden size elements.
    latency_seconds, transfer_seconds: of all all-reduces together.
    """

    tp: int
    model: CostModel
    one_gpu_seconds: float
    compute_seconds: float
    all_reduces: int
    payload_bytes: float
    latency_seconds: float
    transfer_seconds: float

    @property
    def collective_seconds(self) -> float:
        """All all-reduces of the split step."""
        return self.latency_seconds + self.transfer_seconds

    @property
    def step_seconds(self) -> float:
        """The split step; nothing overlaps."""
        return self.compute_seconds + self.collective_seconds

    @property
    def regime(self) -> SketchRegime:
        """What the split does here."""
        if self.step_seconds >= self.one_gpu_seconds:
            return SketchRegime.HURTS
        slow = self.collective_seconds > self.compute_seconds
        return SketchRegime.STILL_WINS if slow else SketchRegime.HELPS

    @property
    def affordable_seconds(self) -> float:
        """What one all-reduce may take before the split loses to one GPU."""
        return (self.one_gpu_seconds - self.compute_seconds) / self.all_reduces

    @property
    def crossing_bytes(self) -> float:
        """The payload of an all-reduce at which the split loses, at this compute.

        0 where the latency alone is too long; infinity where no payload up to 2**60 bytes is.
        """
        low, high = 1.0, 2.0**60

        def is_affordable(payload_bytes: float) -> bool:
            return self.model.seconds(self.tp, payload_bytes) < self.affordable_seconds

        if not is_affordable(low):
            return 0.0
        if is_affordable(high):
            return math.inf
        while high > 1.0001 * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if is_affordable(middle) else (low, middle)
        return math.sqrt(low * high)


def sketch(
    batch: float,
    hidden: int,
    layers: int,
    tp: int,
    model: CostModel,
    *,
    compute_scaling: float = 1.0,
    hbm_bandwidth: float = HBM_BANDWIDTH,
    peak_flops: float = PEAK_FLOPS,
    bytes_per_element: int = 2,
) -> Sketch:
    """A decode step of `batch` sequences through dense layers of 12 hidden^2 weights each.

    Its compute on one GPU is reading all weights, or multiplying them, whichever takes longer:
    caches, embedding and LM head are left out.

    Args:
        model: what one all-reduce costs.
        compute_scaling: the fraction of the compute that splitting divides by `tp`, 0 to 1.
        hbm_bandwidth, peak_flops: of one GPU, bytes per second and floating point operations.

    Raises:
        ValueError: a number outside its range.
    """
    sizes = {"batch": batch, "hidden": hidden, "layers": layers}
    for name, value in (sizes | {"bytes_per_element": bytes_per_element}).items():
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be above 0")
    weights = 12 * hidden**2 * layers
    reading = weights * bytes_per_element / hbm_bandwidth
    compute = max(reading, 2 * weights * batch / peak_flops)
    check_split(compute, tp, compute_scaling)
    payload = batch * hidden * bytes_per_element
    terms = model.terms(tp, payload)
    return Sketch(
        tp=tp,
        model=model,
        one_gpu_seconds=compute,
        compute_seconds=compute * left_over(tp, compute_scaling),
        all_reduces=2 * layers,
        payload_bytes=payload,
        latency_seconds=2 * layers * terms.latency_seconds,
        transfer_seconds=2 * layers * terms.transfer_seconds,
    )


def left_over(tp: int, compute_scaling: float) -> float:
    """The part of one GPU's compute that each of `tp` is left with."""
    return 1 - compute_scaling + compute_scaling / tp


def check_split(compute: float, tp: int, scaling: float) -> None:
    """Raise ValueError for no compute, fewer than 2 GPUs, or a fraction that is none."""
    if compute <= 0:
        raise ValueError(f"compute_seconds is {compute}; it must be above 0")
    if tp < 2:
        raise ValueError(f"tp is {tp}; a trade-off needs at least 2 GPUs")
    if not 0 <= scaling <= 1:
        raise ValueError(f"compute_scaling is {scaling}; it must be from 0 to 1")
