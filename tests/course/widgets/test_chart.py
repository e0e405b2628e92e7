"""Charts: logarithmic places, ticks around the values, names that do not overlap."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.palette import SERIES
from course.widgets.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    LINE,
    RIGHT,
    STYLES,
    TOP,
    WIDTH,
    Axis,
    Chart,
    Curve,
    apart,
    decades,
)

X, Y = Axis("batch", "", (1.0, 10.0, 100.0)), Axis("time", "s", (1e-3, 1e-2))
CHART = Chart(
    X, Y, (Curve("one", "ink", ((1, 1e-3), (100, 1e-2))),), 10, "here", ((10, 5e-3, "mark"),), "so"
)


def test_places_are_logarithmic_and_fill_the_frame():
    placed = CHART.geometry()
    left, top, right, bottom = LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM
    assert placed["frame"] == [left, top, right, bottom]
    assert placed["curves"][0]["path"] == f"M{left} {bottom}L{right} {top}"
    assert placed["here"] == [(left + right) / 2, "here"]
    assert [words for _, words in placed["y_ticks"]] == ["1 ms", "10 ms"]


def test_curves_differ_by_dashes_as_well_as_by_colour():
    assert len({dashes for _, dashes, _ in STYLES.values()}) == len(STYLES)
    assert {colour for colour, _, _ in STYLES.values()} >= set(SERIES)


@given(st.lists(st.floats(1e-7, 1e3), min_size=1, max_size=6))
def test_ticks_enclose_all_values(values: list[float]):
    ticks = decades(values)
    assert ticks[0] <= min(values)
    assert max(values) <= ticks[-1]
    assert list(ticks) == sorted(set(ticks))
    assert len(ticks) >= 2


def test_a_wide_range_has_few_ticks():
    assert decades([2e-3, 5e-2]) == pytest.approx((2e-3, 5e-3, 1e-2, 2e-2, 5e-2))
    assert decades([2e-5, 5e-2]) == pytest.approx((1e-5, 1e-4, 1e-3, 1e-2, 1e-1))


@given(st.lists(st.floats(TOP, HEIGHT - BOTTOM), min_size=1, max_size=6))
def test_names_keep_their_order_and_a_line_between_them(places: list[float]):
    moved = apart(places)
    order = sorted(range(len(places)), key=lambda index: places[index])
    for above, below in pairwise(order):
        assert moved[below] - moved[above] >= LINE - 1e-9
