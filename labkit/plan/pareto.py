"""Which points no other beats in both: time per token against tokens per second for each GPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labkit.plan.layout import Layout


@dataclass(frozen=True)
class ParetoPoint:
    """One layout at one batch.

    Attributes:
        layout: with its replicas; of the decode pool where prefill has a pool of its own.
        batch: sequences of each replica.
        tpot: seconds between two tokens of a sequence.
        tokens_per_second_per_gpu: output tokens, over all GPUs of the question.
        ttft: seconds; None where prefill is not modelled.
        prefill_layout: of the prefill pool; None where one pool does both.
    """

    layout: Layout
    batch: int
    tpot: float
    tokens_per_second_per_gpu: float
    ttft: float | None = None
    prefill_layout: Layout | None = None

    @property
    def user_tokens_per_second(self) -> float:
        """What one client sees."""
        return 1 / self.tpot

    def beats(self, other: ParetoPoint) -> bool:
        """Whether it is at least as good in both and better in one."""
        as_good = (
            self.tpot <= other.tpot
            and self.tokens_per_second_per_gpu >= other.tokens_per_second_per_gpu
        )
        return as_good and (self.tpot, self.tokens_per_second_per_gpu) != (
            other.tpot,
            other.tokens_per_second_per_gpu,
        )


def pareto_set(points: Iterable[ParetoPoint]) -> tuple[ParetoPoint, ...]:
    """Those that no other beats, from the shortest time per token on; equal ones once."""
    ordered = sorted(points, key=lambda point: (point.tpot, -point.tokens_per_second_per_gpu))
    kept: list[ParetoPoint] = []
    for point in ordered:
        if not kept or point.tokens_per_second_per_gpu > kept[-1].tokens_per_second_per_gpu:
            kept.append(point)
    return tuple(kept)
