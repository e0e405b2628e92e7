"""A numbering of the points of a small graph that does not depend on the numbers they came with.

Two graphs that differ in their numbers alone get equal `form`s. A graph whose parts are joined by
one colour only is taken apart; the rest is told apart point by point (individualisation and
refinement, with automorphisms as they are found: McKay & Piperno, "Practical graph isomorphism II",
2014).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Colour = Callable[[int, int], int]
"""The colour of the edge between two points, the same both ways."""
Form = tuple[int, ...]


def form(points: Sequence[int], colour: Colour) -> Form:
    """The colours of all edges, row by row."""
    return tuple(colour(a, b) for index, a in enumerate(points) for b in points[:index])


def canonical_order(points: Sequence[int], colour: Colour) -> tuple[int, ...]:
    """The points in an order whose `form` is the same whatever they are called."""
    if len(points) == 1:
        return tuple(points)
    for joining in sorted(set(form(points, colour))):
        parts = _parts(points, colour, joining)
        if len(parts) > 1:
            orders = [canonical_order(part, colour) for part in parts]
            orders.sort(key=lambda order: (len(order), form(order, colour)))
            return tuple(point for order in orders for point in order)
    return _told_apart([list(points)], colour)


def _parts(points: Sequence[int], colour: Colour, joining: int) -> list[list[int]]:
    """The parts between which every edge has the colour `joining`."""
    left, parts = set(points), []
    while left:
        part, new = [], [left.pop()]
        while new:
            point = new.pop()
            part.append(point)
            near = {other for other in left if colour(point, other) != joining}
            left -= near
            new.extend(near)
        parts.append(part)
    return parts


def _told_apart(cells: list[list[int]], colour: Colour) -> tuple[int, ...]:
    """Each point of the first cell of many in turn comes first; the order of the least form.

    Two orders of one form show a symmetry, and of points that symmetries exchange one will do.
    """
    cells = _refined(cells, colour)
    many = next((index for index, cell in enumerate(cells) if len(cell) > 1), None)
    if many is None:
        return tuple(point for (point,) in cells)
    found: list[tuple[Form, tuple[int, ...]]] = []
    symmetries: list[dict[int, int]] = []
    done: set[int] = set()
    for point in cells[many]:
        if point in done:
            continue
        others = [other for other in cells[many] if other != point]
        split = [*cells[:many], [point], others, *cells[many + 1 :]]
        order = _told_apart(split, colour)
        mine = form(order, colour)
        symmetries += [dict(zip(order, other, strict=True)) for its, other in found if its == mine]
        found.append((mine, order))
        done = _reached({*done, point}, symmetries)
    return min(found)[1]


def _reached(points: set[int], symmetries: Sequence[Mapping[int, int]]) -> set[int]:
    """The points, and all that the symmetries carry them to, one after the other."""
    new = points
    while new:
        new = {symmetry[point] for symmetry in symmetries for point in new} - points
        points = points | new
    return points


def _refined(cells: list[list[int]], colour: Colour) -> list[list[int]]:
    """The cells split until the points of each have the same edges to every cell."""
    while True:
        split: list[list[int]] = []
        for cell in cells:
            alike: dict[tuple[tuple[int, ...], ...], list[int]] = {}
            for point in cell:
                edges = tuple(
                    tuple(sorted(colour(point, other) for other in near if other != point))
                    for near in cells
                )
                alike.setdefault(edges, []).append(point)
            split.extend(alike[edges] for edges in sorted(alike))
        if len(split) == len(cells):
            return split
        cells = split
