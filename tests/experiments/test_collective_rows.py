"""Rows of times: medians, ratios within a turn, and the way to a file and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from labkit.experiments.collective_rows import (
    CollectiveRow,
    CollectiveTimes,
    read_times,
    together,
)
from labkit.experiments.provenance import Provenance
from labkit.plan.calibration import calibrate
from labkit.plan.collectives import Ring


def row(implementation: str, *seconds: float, size: int = 1024, ranks: int = 2) -> CollectiveRow:
    return CollectiveRow("all_reduce", implementation, ranks, size, 10, seconds)


def times(*rows: CollectiveRow, left_out: tuple[tuple[str, str], ...] = ()) -> CollectiveTimes:
    return CollectiveTimes(rows, "float32", "cpu", "shuffled", left_out, Provenance.here())


def test_median_quartiles_and_fastest():
    measured = row("gloo", 5.0, 1.0, 2.0, 4.0, 3.0)
    assert (measured.seconds, measured.quartiles, measured.fastest) == (3.0, (2.0, 4.0), 1.0)
    assert row("gloo", 2.0).quartiles == (2.0, 2.0)


def test_a_ratio_is_taken_within_each_turn():
    # A disturbance that slows both in one turn leaves the ratio alone.
    ours, gloo = row("ours", 1.0, 50.0, 1.0), row("gloo", 3.0, 150.0, 3.0)
    assert ours.times_as_fast_as(gloo) == 3.0


def test_times_survive_their_file(tmp_path: Path):
    measured = times(row("gloo", 1.0, 2.0), row("ours", 0.5), left_out=(("nccl", "no GPU"),))
    file = tmp_path / "times.json"
    file.write_text(json.dumps(measured.as_dict()))
    assert read_times(file) == measured


@pytest.mark.parametrize("fields", [{}, {"rows": [{"op": "all_reduce"}]}, {"rows": 3}])
def test_another_file_is_told_apart(fields: dict):
    with pytest.raises(ValueError, match="these are no times of collectives"):
        CollectiveTimes.from_dict(fields)


def test_points_are_what_calibrate_takes():
    ring = Ring(hop_latency=20e-6, bandwidth=2e9)
    measured = times(
        *(
            row("gloo", ring.seconds(n, size), size=size, ranks=n)
            for n in (2, 4)
            for size in (1024, 65536, 2**22)
        ),
        row("ours", 1.0),
    )
    fit = calibrate(measured.points("gloo"), "ring")
    assert fit.parameters["hop_latency"].value == pytest.approx(20e-6, rel=1e-3)
    assert fit.parameters["bandwidth"].value == pytest.approx(2e9, rel=1e-3)


def test_a_row_is_found_by_all_four():
    measured = times(row("gloo", 1.0), row("gloo", 2.0, size=2048), row("gloo", 3.0, ranks=4))
    assert measured.row("gloo", "all_reduce", 4, 1024) is measured.rows[2]
    assert measured.row("gloo", "all_gather", 4, 1024) is None


def test_parts_come_together_with_each_reason_once():
    one = times(row("gloo", 1.0), left_out=(("nccl", "no GPU"),))
    two = times(row("gloo", 1.0, ranks=4), left_out=(("nccl", "no GPU"), ("gloo", "x")))
    both = together([one, replace(two, provenance=one.provenance)])
    assert both.rows == one.rows + two.rows
    assert dict(both.left_out) == {"nccl": "no GPU", "gloo": "x"}
