"""The picture of `labkit bench collectives`: a PNG, a finding, and names that do not overlap."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from course.collective_plot import draw, finding
from course.line_ends import spread
from labkit.experiments.collective_rows import CollectiveRow, CollectiveTimes
from labkit.experiments.provenance import Provenance


def row(implementation: str, size: int, seconds: float, op: str = "all_reduce") -> CollectiveRow:
    turns = (seconds, 1.2 * seconds, 0.9 * seconds)
    return CollectiveRow(op, implementation, 2, size, 10, turns)


ROWS = (
    row("gloo", 1024, 6e-4),
    row("gloo", 2**20, 2e-3),
    row("shared memory", 1024, 2e-5),
    row("shared memory", 2**20, 1e-3),
    row("gloo", 1024, 6e-4, op="broadcast"),
)


def test_writes_a_png(tmp_path: Path):
    file = tmp_path / "times.png"
    draw(CollectiveTimes(ROWS, "float32", "cpu", "shuffled", (), Provenance.here()), file)
    assert file.read_bytes().startswith(b"\x89PNG")


def test_the_title_says_who_is_fastest_and_who_slowest_at_the_smallest_size():
    assert finding(ROWS[:4]) == (
        "all_reduce, 2 ranks, 1 KiB: shared memory takes 20 us, gloo 600 us"
    )
    assert finding(ROWS[4:]) == "broadcast, 2 ranks, 1 KiB: gloo takes 600 us"


@given(st.lists(st.floats(0, 1), max_size=9))
def test_names_keep_their_order_and_a_gap(places: list[float]):
    given_places = {str(index): place for index, place in enumerate(places)}
    found = list(spread(given_places).items())
    assert [given_places[name] for name, _ in found] == sorted(places, reverse=True)
    assert all(a - b > 0.05 for (_, a), (_, b) in pairwise(found))
