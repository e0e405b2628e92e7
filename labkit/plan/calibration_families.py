"""The cost models that can be fitted to measured points: their parameters, and where to start."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from labkit.plan.collectives import (
    AllToAll,
    CostModel,
    Hierarchical,
    LaunchBound,
    OneOrTwoShot,
    OneShot,
    RecursiveDoubling,
    Ring,
    RingAllGather,
    RingReduceScatter,
    Tree,
    TwoShot,
)

Measured = Sequence[tuple[int, float, float]]
"""Ranks, payload bytes, seconds of each point."""
Starts = list[tuple[float, ...]]


@dataclass(frozen=True)
class Family:
    """One kind of model to fit.

    Attributes:
        parameters: their names, in the order that `build` takes them; seconds, or bytes per second
            for those that end in "bandwidth".
        build: values -> model.
        starts: points -> values to search from.
        sizes: how many different sizes the points must have.
        rank_counts: how many different rank counts.
    """

    parameters: tuple[str, ...]
    build: Callable[..., CostModel]
    starts: Callable[[Measured], Starts]
    sizes: int = 2
    rank_counts: int = 1


Linear = Callable[[float, float], CostModel]
"""A model of a latency and a bandwidth."""


def _linear(build: Linear, latency: str) -> Family:
    return Family((latency, "bandwidth"), build, lambda points: [_start(build, points)])


def _with_launch(build: Callable[[float, float, float], CostModel], latency: str) -> Family:
    def starts(points: Measured) -> Starts:
        hop, bandwidth = _start(lambda h, b: build(h, b, 0.0), points)
        smallest = min(seconds for _, _, seconds in points)
        return [(hop * part, bandwidth, smallest * (1 - part)) for part in (0.1, 0.5, 0.9)]

    return Family((latency, "bandwidth", "launch"), build, starts, rank_counts=2)


def _start(build: Linear, points: Measured) -> tuple[float, float]:
    """The latency that the small half of the points shows, and the large half's bandwidth."""
    by_size = sorted(points, key=lambda point: point[1])
    half = max(1, len(by_size) // 2)
    hops, bytes_alone = build(1.0, math.inf), build(0.0, 1.0)
    latency = statistics.median(t / hops.seconds(n, s) for n, s, t in by_size[:half])
    bandwidth = statistics.median(bytes_alone.seconds(n, s) / t for n, s, t in by_size[-half:])
    return latency, bandwidth


def _one_or_two(t1: float, b1: float, t2: float, b2: float) -> OneOrTwoShot:
    return OneOrTwoShot(OneShot(t1, b1), TwoShot(t2, b2))


def _one_or_two_starts(points: Measured) -> Starts:
    latency, _ = _start(OneShot, points)
    _, bandwidth = _start(TwoShot, points)
    return [
        (latency, bandwidth * share, latency * times, bandwidth)
        for share in (0.3, 0.6, 1.0, 2.0)
        for times in (1.5, 3.0, 6.0)
    ]


def _launch_bound(launch: float, latency: float, bandwidth: float) -> LaunchBound:
    return LaunchBound(launch, TwoShot(latency, bandwidth))


def _launch_bound_starts(points: Measured) -> Starts:
    latency, bandwidth = _start(TwoShot, points)
    return [(latency, latency * part, bandwidth) for part in (0.1, 0.4, 0.8)]


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "ring": _linear(Ring, "hop_latency"),
        "ring_reduce_scatter": _linear(RingReduceScatter, "hop_latency"),
        "ring_all_gather": _linear(RingAllGather, "hop_latency"),
        "recursive_doubling": _linear(RecursiveDoubling, "hop_latency"),
        "tree": _linear(Tree, "hop_latency"),
        "all_to_all": _linear(AllToAll, "peer_latency"),
        "one_shot": _linear(OneShot, "latency"),
        "two_shot": _linear(TwoShot, "latency"),
        "one_or_two_shot": Family(
            ("one_shot.latency", "one_shot.bandwidth", "two_shot.latency", "two_shot.bandwidth"),
            _one_or_two,
            _one_or_two_starts,
            sizes=4,
        ),
        "launch_bound": Family(
            ("launch", "latency", "bandwidth"), _launch_bound, _launch_bound_starts, sizes=3
        ),
    }
)
"""By name. `launch_bound` is a two-shot that the host starts one by one."""

LAUNCHED: Mapping[str, Family] = MappingProxyType(
    {
        "ring": _with_launch(Ring, "hop_latency"),
        "ring_reduce_scatter": _with_launch(RingReduceScatter, "hop_latency"),
        "ring_all_gather": _with_launch(RingAllGather, "hop_latency"),
        "recursive_doubling": _with_launch(RecursiveDoubling, "hop_latency"),
        "tree": _with_launch(Tree, "hop_latency"),
        "all_to_all": _with_launch(AllToAll, "peer_latency"),
    }
)
"""Those whose latency grows with the ranks, with a start on top that does not."""


def hierarchical(inner_size: int) -> Family:
    """Rings inside groups of `inner_size` ranks and a ring between them."""

    def build(h1: float, b1: float, h2: float, b2: float) -> Hierarchical:
        return Hierarchical(Ring(h1, b1), Ring(h2, b2), inner_size)

    def starts(points: Measured) -> Starts:
        inside = [point for point in points if point[0] <= inner_size]
        across = [point for point in points if point[0] > inner_size]
        latency, bandwidth = _start(Ring, inside)
        outer_latency, outer_bandwidth = _start(
            lambda h, b: Hierarchical(Ring(0.0, math.inf), Ring(h, b), inner_size), across
        )
        return [(latency, bandwidth, outer_latency, outer_bandwidth)]

    names = ("inner.hop_latency", "inner.bandwidth", "outer.hop_latency", "outer.bandwidth")
    return Family(names, build, starts, rank_counts=2)
