"""Groups inside a node whose GPUs are not all joined alike: the best ring, the best placement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations, permutations
from typing import Any

from labkit.plan.hardware import LinkSpec

MOST_SEARCHED = 12
"""GPUs of a node up to which every placement is compared, and rings are searched for."""
REFERENCE_BYTES = 2**20
"""Payload by which placements are compared: a decode step's all-reduce of the usual size."""

Seconds = Callable[[Sequence[int]], Any]
"""What a group costs: a number, or several of which the first counts most."""


def bottleneck(members: Sequence[int], link: Callable[[int, int], LinkSpec]) -> LinkSpec:
    """The slowest link of the ring over `members` whose slowest link is the fastest.

    Its latency is that of the slowest hop among the links that are as fast or faster. Two members
    have one link; with more each member has two different neighbours.
    """
    joined = {frozenset(pair): link(*pair) for pair in combinations(members, 2)}
    ranked = sorted(set(joined.values()), key=_speed)
    allowed: list[LinkSpec] = []
    for slowest in ranked:
        allowed.append(slowest)
        edges = {pair for pair, spec in joined.items() if spec in allowed}
        if _has_ring(members, edges):
            break
    latency = max(spec.hop_latency for spec in allowed)
    return slowest if latency == slowest.hop_latency else _with_latency(slowest, latency)


def fastest_groups(
    gpus: Sequence[int],
    size: int,
    seconds: Seconds,
    count: int | None = None,
    alike: Collection[int] = (),
) -> list[tuple[int, ...]]:
    """`count` groups of `size`, each GPU in one at most: the slowest as fast as can be, then the
    next. None makes as many as there are.

    Up to 12 GPUs every placement is compared; with more, the fastest group left is taken each time
    among those that can be made around one GPU's neighbours; of GPUs that are `alike` the first is
    tried.
    """
    every, wanted = tuple(gpus), len(gpus) // size if count is None else count
    if size in (1, len(every)):
        return [every[start : start + size] for start in range(0, wanted * size, size)]
    if len(every) > MOST_SEARCHED:
        return _one_by_one(every, size, seconds, wanted, alike)
    cost = {group: seconds(group) for group in combinations(every, size)}
    best: dict[tuple[tuple[int, ...], int], _Placed] = {}

    def search(left: tuple[int, ...], number: int) -> _Placed:
        if not number:
            return (), ()
        if (left, number) not in best:
            first, rest = left[0], left[1:]
            options = []
            for others in combinations(rest, size - 1):
                group = (first, *others)
                unused = tuple(gpu for gpu in rest if gpu not in others)
                costs, groups = search(unused, number - 1)
                options.append((_slowest_first((cost[group], *costs)), (group, *groups)))
            if len(rest) >= number * size:
                options.append(search(rest, number))
            best[left, number] = min(options)
        return best[left, number]

    return list(search(every, wanted)[1])


_Placed = tuple[tuple[Any, ...], tuple[tuple[int, ...], ...]]
"""The costs of some groups, the slowest first, and the groups."""


def _one_by_one(
    gpus: Sequence[int], size: int, seconds: Seconds, count: int, alike: Collection[int]
) -> list[tuple[int, ...]]:
    left, groups = list(gpus), list[tuple[int, ...]]()
    apart = {pair: seconds(pair) for pair in permutations(gpus, 2)}

    def tried(free: Iterable[int]) -> list[int]:
        """Of those alike the first."""
        first_alike = next((gpu for gpu in free if gpu in alike), None)
        return [gpu for gpu in free if gpu not in alike or gpu == first_alike]

    def grown(first: int) -> tuple[int, ...]:
        """The GPU and those nearest to all that are in by then."""
        group, total = [first], {gpu: 0.0 for gpu in left if gpu != first}
        while len(group) < size:
            for gpu in total:
                total[gpu] += apart[group[-1], gpu]
            group.append(min(tried(total), key=lambda gpu: (total[gpu], gpu)))
            del total[group[-1]]
        return tuple(sorted(group))

    while len(groups) < count:
        found = {grown(first) for first in tried(left)}
        groups.append(min(found, key=lambda group: (seconds(group), group)))
        left = [gpu for gpu in left if gpu not in groups[-1]]
    return groups


def _slowest_first(costs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(costs, reverse=True))


def _speed(spec: LinkSpec) -> tuple[float, float, str]:
    return (-spec.bandwidth, spec.hop_latency, spec.name)


def _with_latency(spec: LinkSpec, latency: float) -> LinkSpec:
    return LinkSpec(
        spec.name, spec.title, spec.bandwidth, latency, spec.source, spec.label, spec.note
    )


def _has_ring(members: Sequence[int], edges: set[frozenset[int]]) -> bool:
    """Whether the members can stand in a ring in which neighbours share an edge."""
    if len(members) == 2:
        return frozenset(members) in edges
    near = {
        gpu: {other for other in members if frozenset((gpu, other)) in edges} for gpu in members
    }
    fewest = min(len(others) for others in near.values())
    if 2 * fewest >= len(members):
        return True
    if fewest < 2 or len(members) > MOST_SEARCHED:
        return False
    first = members[0]

    def walk(last: int, left: frozenset[int]) -> bool:
        if not left:
            return first in near[last]
        return any(walk(step, left - {step}) for step in near[last] & left)

    return walk(first, frozenset(members[1:]))
