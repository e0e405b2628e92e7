"""Pipeline stages one after the other: which follows which, and which of their GPUs are joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Groups = Sequence[tuple[int, ...]]
"""A stage: its TP groups, one for each copy of attention."""
Seconds = Callable[[int, int], float]
"""What a message from one GPU to another takes."""


def chained(stages: Sequence[Groups], seconds: Seconds) -> list[Groups]:
    """The stages in the order, and the GPUs of each in the order, whose slowest hop is fastest.

    A GPU sends to the one in its place in the next stage; a TP group can take any order inside.
    """
    places = range(len(stages))
    hops = {
        (a, b): max(_fastest_facing(x, y, seconds)[0] for x, y in zip(*pair, strict=True))
        for a in places
        for b in places
        if a != b and (pair := (stages[a], stages[b]))
    }
    path = next(
        path
        for limit in sorted({0.0, *hops.values()})
        if (path := _path(len(stages), {hop for hop, cost in hops.items() if cost <= limit}))
    )
    chain = [stages[path[0]]]
    for place in path[1:]:
        facing = zip(chain[-1], stages[place], strict=True)
        chain.append([_fastest_facing(x, y, seconds)[1] for x, y in facing])
    return chain


def _path(length: int, hops: set[tuple[int, int]]) -> tuple[int, ...]:
    """All places once over these hops; empty where there is no such path."""

    def walk(path: tuple[int, ...]) -> tuple[int, ...]:
        if len(path) == length:
            return path
        steps = (
            place
            for place in range(length)
            if place not in path and (not path or (path[-1], place) in hops)
        )
        return next((found for step in steps if (found := walk((*path, step)))), ())

    return walk(())


def _fastest_facing(
    group: Sequence[int], other: Sequence[int], seconds: Seconds
) -> tuple[float, tuple[int, ...]]:
    """The second group in the order in which its GPUs face the first with the fastest slowest link,
    and that link's seconds."""
    for limit in sorted({seconds(a, b) for a in group for b in other}):
        near = {a: [b for b in other if seconds(a, b) <= limit] for a in group}
        matched = _matched(near)
        if matched:
            return limit, matched
    raise AssertionError("the slowest link of all lets every GPU face any other")


def _matched(near: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """A partner for each of the keys among its own; empty where not all can have one (augmenting
    paths)."""
    partner: dict[int, int] = {}

    def seat(gpu: int, tried: set[int]) -> bool:
        for candidate in near[gpu]:
            if candidate in tried:
                continue
            tried.add(candidate)
            if candidate not in partner or seat(partner[candidate], tried):
                partner[candidate] = gpu
                return True
        return False

    if not all(seat(gpu, set()) for gpu in near):
        return ()
    facing = {gpu: candidate for candidate, gpu in partner.items()}
    return tuple(facing[gpu] for gpu in near)
