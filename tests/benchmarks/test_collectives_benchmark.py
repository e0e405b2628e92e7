"""The collectives benchmark's parts: bars, fits, plans, text. No timings."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.collective_bars import AGAINST_GLOO, speed_bars
from benchmarks.collective_fits import MODELS, local_fits
from benchmarks.collective_plan import BAR_SIZES, FULL, QUICK
from benchmarks.collectives import RESULT, summary
from benchmarks.preset_errors import ERROR_BAR, preset_bars, preset_errors
from labkit.experiments.collective_implementations import OPS, SEND_RECV, TRANSPORTS
from labkit.experiments.collective_rows import CollectiveRow, CollectiveTimes
from labkit.experiments.overlap import OverlapTime
from labkit.experiments.provenance import Provenance
from labkit.plan.collective_presets import COLLECTIVE_PRESETS
from labkit.plan.collectives import Ring
from labkit.plan.recorded_collectives import GRAPH

KIB = 2**10
HERE = Provenance.here()


def row(implementation: str, size: int, *seconds: float, ranks: int = 2) -> CollectiveRow:
    return CollectiveRow("all_reduce", implementation, ranks, size, 1, seconds)


def times(*rows: CollectiveRow) -> CollectiveTimes:
    return CollectiveTimes(rows, "float32", "cpu", "shuffled", (), HERE)


@pytest.mark.parametrize(("name", "size", "bar"), AGAINST_GLOO)
def test_a_bar_is_where_it_was_set(name: str, size: int, bar: float):
    for factor, ok in ((1.01, True), (0.99, False)):
        measured = times(row("gloo", size, 1.0, 2.0), row(name, size, *(
            seconds / (factor * bar) for seconds in (1.0, 2.0)
        )))  # fmt: skip
        (found,) = (bar for bar in speed_bars(measured) if bar.value is not None)
        assert found.ok is ok
        assert name in found.name


def test_what_was_not_measured_is_missed():
    found = speed_bars(times(row("gloo", 16 * KIB, 1.0)))
    assert len(found) == len(AGAINST_GLOO)
    assert not any(bar.ok for bar in found)


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_every_plan_measures_what_the_bars_ask_for(plan):
    (part,) = (part for part in plan.parts if part.ranks == 2)
    assert "all_reduce" in part.ops
    assert set(BAR_SIZES) <= set(part.sizes)
    assert {size for _, size, _ in AGAINST_GLOO} == set(BAR_SIZES)


def test_every_model_belongs_to_something_that_runs():
    for implementation, op in MODELS:
        assert op in (OPS if implementation in TRANSPORTS else SEND_RECV[implementation])
    assert {(name, op) for name, ops in SEND_RECV.items() for op in ops} <= set(MODELS)


def test_rank_counts_are_fitted_apart_and_a_refusal_is_told():
    links = {2: Ring(1e-4, 2e9), 4: Ring(2e-3, 1e9)}
    rows = [
        row("gloo", size, ring.seconds(ranks, size), ranks=ranks)
        for ranks, ring in links.items()
        for size in (KIB, 64 * KIB, 1024 * KIB, 4096 * KIB)
    ]
    two, four = local_fits(times(*rows))
    for found, ring in ((two, links[2]), (four, links[4])):
        assert found.fit is not None
        assert found.fit.fits
        value = found.fit.parameters["hop_latency"].value
        assert value == pytest.approx(ring.hop_latency, rel=1e-3)
        assert found.as_dict()["parameters"]["hop_latency"]["value"] == value
    (refused,) = local_fits(times(rows[0]))
    assert refused.fit is None
    assert "too few" in str(refused)
    assert "too few" in refused.as_dict()["refusal"]


def test_the_summary_tells_what_overlap_hides():
    overlap = OverlapTime(2, "gloo", 4096, 3, 1, 2e-3, 1e-3, 3e-3, 2.5e-3, HERE)
    (line,) = (line for line in summary([], [overlap], [], []) if line)
    assert "4 KiB beside 3 products" in line
    assert "hidden 50% of what could be" in line
    (line,) = (
        line for line in summary([], [replace(overlap, side_by_side_seconds=4e-3)], [], []) if line
    )
    assert "hidden -100%" in line


def test_stored_result_has_every_bar_and_hides_no_miss():
    stored = json.loads(RESULT.read_text())
    found = speed_bars(CollectiveTimes.from_dict(stored))
    assert [bar.as_dict() for bar in found] == stored["bars"][: len(found)]


def test_every_preset_has_its_error_and_the_textbook_where_points_ship():
    errors = {error.name: error for error in preset_errors()}
    assert errors.keys() == COLLECTIVE_PRESETS.keys()
    graph = errors[GRAPH]
    assert graph.error < ERROR_BAR < graph.textbook
    assert f"{graph.title}, all_reduce: {graph.error:.1%}" in str(graph)
    assert "does not fit" in str(next(error for error in errors.values() if not error.fits))


def test_presets_keep_their_bars():
    found = preset_bars(spoil_every=25)
    assert [bar.ok for bar in found] == [True, True, True]
