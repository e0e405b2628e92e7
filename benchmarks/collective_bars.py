"""The bars of `benchmarks/collectives.py`: how fast all-reduce is here."""

from __future__ import annotations

from benchmarks.bar import Bar
from benchmarks.collective_plan import KIB
from labkit.experiments.collective_rows import CollectiveTimes
from labkit.experiments.size_list import size_text

AGAINST_GLOO = (
    ("shared memory", 16 * KIB, 15.0),
    ("shared memory", 72 * KIB, 10.0),
    ("send/recv one-shot", 16 * KIB, 1.5),
)


def speed_bars(times: CollectiveTimes) -> list[Bar]:
    """All-reduce of 2 ranks against gloo's, ratios taken within each turn."""
    return [
        Bar(f"{name} against gloo, all_reduce, 2 ranks, {size_text(size)}", value, bar)
        for name, size, bar in AGAINST_GLOO
        for value in [_speedup(times, name, size)]
    ]


def _speedup(times: CollectiveTimes, name: str, size: int) -> float | None:
    ours = times.row(name, "all_reduce", 2, size)
    gloo = times.row("gloo", "all_reduce", 2, size)
    return None if ours is None or gloo is None else ours.times_as_fast_as(gloo)
