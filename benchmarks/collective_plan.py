"""How much `benchmarks/collectives.py` measures."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.experiments.collective_implementations import OPS
from labkit.experiments.size_list import parse_sizes

KIB = 2**10
BAR_SIZES = (16 * KIB, 72 * KIB)
"""What the bars are set at; 72 KiB is one decode all-reduce of SmolLM2 at batch 32 in fp32."""


@dataclass(frozen=True)
class Part:
    """One call of `time_collectives` on a pool of its own."""

    ranks: int
    ops: tuple[str, ...]
    sizes: tuple[int, ...]
    turns: int


@dataclass(frozen=True)
class Plan:
    """Parts in their order, and turns of the overlap experiment (on 2 ranks)."""

    parts: tuple[Part, ...]
    overlap_turns: int
    spoil_every: int
    """Which of the recorded points are made outliers, one at a time, to see the fit stay."""
    deadline: float
    """Seconds that one part may take."""


FULL = Plan(
    parts=(
        Part(2, OPS, parse_sizes("1KiB:16MiB,72KiB"), turns=31),
        Part(3, ("all_reduce",), parse_sizes("1KiB:4MiB"), turns=9),
        Part(4, ("all_reduce",), parse_sizes("1KiB:4MiB"), turns=9),
    ),
    overlap_turns=15,
    spoil_every=1,
    deadline=420.0,
)
QUICK = Plan(
    parts=(Part(2, ("all_reduce",), parse_sizes("1KiB,16KiB,72KiB,1MiB"), turns=11),),
    overlap_turns=3,
    spoil_every=10,
    deadline=30.0,
)
