"""When does splitting a step over GPUs pay? A sketch of two terms, on a slow and on a fast link.

    step = compute / n  +  ring bytes / bandwidth

Less bandwidth always makes the step longer. Whether it is still shorter than on one GPU depends on
how much the compute drops. `trade_off` compares two links by bandwidth alone; `sketch` prices a
decode step with any cost model of `labkit.plan.collectives`, latency included.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from labkit.plan.collectives import ring_all_reduce_seconds
from labkit.plan.decode_sketch import Sketch, SketchRegime, check_split, left_over, sketch

__all__ = [
    "NVLINK_BANDWIDTH",
    "Regime",
    "Sketch",
    "SketchRegime",
    "TradeOff",
    "sketch",
    "trade_off",
]

NVLINK_BANDWIDTH = 450e9
"""Bytes per second, one direction: NVLink of the Hopper generation (assumed, a round figure)."""


class Regime(Enum):
    """What splitting does, named by its value; `sentence` explains it."""

    SLOW_LINK_PAYS = "the slow link still beats one GPU"
    ONLY_FAST_LINK_PAYS = "only the fast link pays"
    NO_LINK_PAYS = "one GPU beats both links"

    @property
    def sentence(self) -> str:
        """Why the regime is what it is, for a reader."""
        return _SENTENCES[self]


_SENTENCES = {
    Regime.SLOW_LINK_PAYS: (
        "The compute drops by more than the slow link costs: the split step is longer than on the "
        "fast link and still shorter than on one GPU."
    ),
    Regime.ONLY_FAST_LINK_PAYS: (
        "The slow link costs more than the compute saves, so there the split loses to one GPU; "
        "on the fast link it wins."
    ),
    Regime.NO_LINK_PAYS: (
        "The compute barely drops: even the fast link costs as much as the split saves, or more, "
        "and the slow link only makes it worse."
    ),
}


@dataclass(frozen=True)
class TradeOff:
    """Seconds of one step on one GPU and split, modelled."""

    one_gpu_seconds: float
    compute_seconds: float
    """Of the split step, on each GPU."""
    collective_seconds: float
    """On the link in question."""
    fast_collective_seconds: float
    """The same messages on the fast link."""
    regime: Regime

    @property
    def step_seconds(self) -> float:
        """The split step on the link in question."""
        return self.compute_seconds + self.collective_seconds

    @property
    def fast_step_seconds(self) -> float:
        """The split step on the fast link: never the longer one."""
        return self.compute_seconds + self.fast_collective_seconds


def trade_off(
    compute_seconds: float,
    tp: int,
    payload_bytes: float,
    link_bandwidth: float,
    *,
    fast_bandwidth: float = NVLINK_BANDWIDTH,
    compute_scaling: float = 1.0,
) -> TradeOff:
    """One GPU against `tp` GPUs on a link, and on a fast link beside it.

    Args:
        compute_seconds: of the whole step on one GPU.
        payload_bytes: what all all-reduces of the step reduce, together.
        link_bandwidth, fast_bandwidth: bytes per second; the second is at least the first.
        compute_scaling: the fraction of the compute that splitting divides by `tp`, 0 to 1; the
            rest takes as long as before (kernels too small to gain, work every rank repeats).

    Raises:
        ValueError: a number outside its range.
    """
    _check(compute_seconds, tp, link_bandwidth, fast_bandwidth, compute_scaling)
    compute = compute_seconds * left_over(tp, compute_scaling)
    slow = ring_all_reduce_seconds(payload_bytes, tp, bandwidth=link_bandwidth)
    fast = ring_all_reduce_seconds(payload_bytes, tp, bandwidth=fast_bandwidth)
    return TradeOff(
        one_gpu_seconds=compute_seconds,
        compute_seconds=compute,
        collective_seconds=slow,
        fast_collective_seconds=fast,
        regime=_regime(compute_seconds, compute + slow, compute + fast),
    )


def _regime(one_gpu: float, slow_step: float, fast_step: float) -> Regime:
    if slow_step < one_gpu:
        return Regime.SLOW_LINK_PAYS
    return Regime.ONLY_FAST_LINK_PAYS if fast_step < one_gpu else Regime.NO_LINK_PAYS


def _check(compute: float, tp: int, link: float, fast: float, scaling: float) -> None:
    check_split(compute, tp, scaling)
    if fast < link:
        raise ValueError(
            f"fast_bandwidth {fast:g} B/s is below link_bandwidth {link:g} B/s; "
            "give the faster link as fast_bandwidth"
        )
