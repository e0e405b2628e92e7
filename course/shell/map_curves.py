"""Boxes and the curves between them: straight where the way is free, bent where a box stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

Point = tuple[float, float]

SAMPLES = 32
CLEARANCE = 7.0
BENDS = (0.0, 45.0, -45.0, 80.0, -80.0, 120.0, -120.0, 170.0, -170.0, 230.0, -230.0, 300.0, -300.0)
BEND_PAIRS = sorted(product(BENDS, BENDS), key=lambda b: abs(b[0]) + abs(b[1]) + abs(b[0] - b[1]))
"""How far the first and the last third of a curve are pushed aside: the straightest first."""


@dataclass(frozen=True)
class Rect:
    """An upright rectangle by its top left corner."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def center(self) -> Point:
        return self.left + self.width / 2, self.top + self.height / 2

    def moved(self, dx: float, dy: float) -> Rect:
        """The same rectangle elsewhere."""
        return replace(self, left=self.left + dx, top=self.top + dy)

    def grown(self, by: float) -> Rect:
        """The rectangle with `by` more on every side."""
        return Rect(self.left - by, self.top - by, self.width + 2 * by, self.height + 2 * by)

    def contains(self, point: Point) -> bool:
        """Whether a point lies inside or on the border."""
        return self.left <= point[0] <= self.right and self.top <= point[1] <= self.bottom

    def overlap(self, other: Rect) -> float:
        """Area shared with another rectangle."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)


@dataclass(frozen=True)
class Curve:
    """A cubic Bezier curve from `start` to `end`, where its arrowhead is."""

    start: Point
    control_1: Point
    control_2: Point
    end: Point

    def at(self, t: float) -> Point:
        """The point at 0 <= t <= 1."""
        s = 1 - t
        a, b, c, d = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
        (x0, y0), (x1, y1) = self.start, self.control_1
        (x2, y2), (x3, y3) = self.control_2, self.end
        return a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3

    def points(self) -> list[Point]:
        """Points along the curve, both ends among them."""
        return [self.at(i / SAMPLES) for i in range(SAMPLES + 1)]

    def direction(self, t: float) -> Point:
        """The unit vector along which the curve runs at t."""
        (x0, y0), (x1, y1) = self.at(max(0.0, t - 0.01)), self.at(min(1.0, t + 0.01))
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5 or 1.0
        return (x1 - x0) / length, (y1 - y0) / length

    def moved(self, dx: float, dy: float) -> Curve:
        """The same curve elsewhere."""
        corners = (self.start, self.control_1, self.control_2, self.end)
        return Curve(*((x + dx, y + dy) for x, y in corners))

    def part(self, first: float, last: float) -> Curve:
        """The piece between two values of t."""
        return self._up_to(last)._from(first / last if last else 0.0)

    def _up_to(self, t: float) -> Curve:
        a, b, c, d = self.start, self.control_1, self.control_2, self.end
        ab, bc, cd = _mix(a, b, t), _mix(b, c, t), _mix(c, d, t)
        abc, bcd = _mix(ab, bc, t), _mix(bc, cd, t)
        return Curve(a, ab, abc, _mix(abc, bcd, t))

    def _from(self, t: float) -> Curve:
        backwards = Curve(self.end, self.control_2, self.control_1, self.start)._up_to(1 - t)
        return Curve(backwards.end, backwards.control_2, backwards.control_1, backwards.start)


def between(source: Rect, target: Rect, others: Sequence[Rect], offset: float = 0.0) -> Curve:
    """The curve from one box's border to another's that stays clear of `others`.

    offset: how far its middle is pushed aside anyway, to tell it from its neighbours.
    """
    best, fewest = None, 0
    for first, last in BEND_PAIRS:
        curve = _bent(source, target, offset + first, offset + last)
        hits = collisions(curve, others)
        if best is None or hits < fewest:
            best, fewest = curve, hits
        if not fewest:
            break
    assert best is not None
    return best


def collisions(curve: Curve, boxes: Sequence[Rect]) -> int:
    """How many points of a curve come too close to any of the boxes."""
    near = [rect.grown(CLEARANCE) for rect in boxes]
    points = curve.points()
    return sum(rect.contains(point) for rect in near for point in points)


def loop(rect: Rect) -> Curve:
    """The curve from a box back to itself, over its top edge."""
    x, y, reach = rect.left + 0.64 * rect.width, rect.top, 0.26 * rect.width
    return Curve((x, y - 2), (x + 3, y - 44), (x + reach - 3, y - 44), (x + reach, y - 3))


def _bent(source: Rect, target: Rect, first_bend: float, last_bend: float) -> Curve:
    (x0, y0), (x1, y1) = source.center, target.center
    length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
    across = (-(y1 - y0) / length, (x1 - x0) / length)
    third, two_thirds = _mix((x0, y0), (x1, y1), 1 / 3), _mix((x0, y0), (x1, y1), 2 / 3)
    whole = Curve(
        (x0, y0),
        (third[0] + across[0] * first_bend, third[1] + across[1] * first_bend),
        (two_thirds[0] + across[0] * last_bend, two_thirds[1] + across[1] * last_bend),
        (x1, y1),
    )
    steps = [i / 400 for i in range(401)]
    first = next((t for t in steps if not source.grown(1).contains(whole.at(t))), 0.0)
    last = next((t for t in reversed(steps) if not target.grown(3).contains(whole.at(t))), 1.0)
    return whole.part(first, last) if first < last else whole


def _mix(a: Point, b: Point, t: float) -> Point:
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t
