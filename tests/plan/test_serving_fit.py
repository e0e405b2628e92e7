"""Calibration on recorded serving rows: what it predicts that it was not fitted to."""

from dataclasses import replace

import pytest

from labkit.plan.closed_loop import closed_loop
from labkit.plan.collective_presets import COLLECTIVE_PRESETS
from labkit.plan.device_presets import DEVICES
from labkit.plan.model_presets import resolve_model
from labkit.plan.recorded_serving import ROWS
from labkit.plan.serving_capacity import kv_capacity
from labkit.plan.serving_errors import RowError, error_cells, mean_abs_error
from labkit.plan.serving_fit import GAIN_16BIT, STEP_OVERHEAD, calibrate_serving
from labkit.plan.serving_presets import (
    FITTED_DEGREES,
    FITTED_PROMPT,
    recorded_system,
    vllm_all_reduce,
    vllm_h100,
)
from labkit.plan.serving_rows import ServingRow
from labkit.plan.step_system import Efficiency, System
from labkit.plan.topology import Topology

FIT = vllm_h100()
FITTED = [row for row in ROWS if row.tp in FITTED_DEGREES and row.prompt_tokens == FITTED_PROMPT]
HELD_OUT = [row for row in ROWS if row not in FITTED]


def test_the_rows_are_all_there():
    assert len(ROWS) == 45
    assert len(FITTED) == len(FIT.errors) == 20
    assert {row.tp for row in HELD_OUT if row.prompt_tokens == 1024} == {8}


def test_rows_that_were_not_fitted_are_predicted_within_10_percent():
    errors = FIT.compare(HELD_OUT)
    assert mean_abs_error(errors) < 0.05
    cells = error_cells(errors)
    assert set(cells) == {(2, 8192), (4, 8192), (8, 8192), (8, 1024)}
    assert max(cells.values()) < 0.07


def test_nominal_lengths_instead_of_those_drawn_still_predict_within_10_percent():
    rows = [replace(row, length_share=1.0) for row in ROWS]
    fitted = [row for row in rows if row.tp in FITTED_DEGREES and row.prompt_tokens == 1024]
    fit = calibrate_serving(fitted, FIT.model, recorded_system())
    errors = fit.compare([row for row in rows if row not in fitted])
    assert mean_abs_error(errors) < 0.06
    assert max(error_cells(errors).values()) < 0.10


def test_the_fitted_figures_are_physical_and_determined():
    efficiency = FIT.efficiency
    assert 0.8 < efficiency.memory < 0.95
    assert 0.4 < efficiency.compute < 0.65
    assert efficiency.compute_16bit == pytest.approx(GAIN_16BIT * efficiency.compute)
    assert 20e-6 < efficiency.layer_overhead < 70e-6
    assert efficiency.step_overhead == STEP_OVERHEAD
    assert all(estimate.is_determined for estimate in FIT.parameters.values())
    assert any("assumed" in doubt for doubt in FIT.doubts)


def test_the_roofline_alone_misses_5_to_6_milliseconds_a_step():
    system = recorded_system()
    few = [row for row in ROWS if row.concurrency == 4 and row.prompt_tokens == 1024]
    missed = [
        RowError(row, closed_loop(FIT.model, system, row)).missed_seconds * 1e3 for row in few
    ]
    assert len(missed) == 6
    assert min(missed) > 5
    assert max(missed) < 6


def test_the_running_batch_is_capped_by_the_cache_not_by_the_clients():
    (row,) = (r for r in ROWS if (r.tp, r.prompt_tokens, r.concurrency) == (2, 8192, 64))
    found = FIT.predict(row)
    assert 24 <= found.running <= 30
    assert found.ttft > 30
    assert row.ttft > 30


def test_a_loop_whose_figures_are_known_gives_them_back():
    known = Efficiency(0.7, 0.4, GAIN_16BIT * 0.4, 60e-6, STEP_OVERHEAD, 40e-6, 30e-3)
    system = recorded_system().with_efficiency(known)
    rows = []
    for row in FITTED:
        loop = closed_loop(FIT.model, system, row, FIT.capacity(row))
        rows.append(replace(row, ttft=loop.ttft, tpot=loop.tpot))
    found = calibrate_serving(rows, FIT.model, recorded_system()).efficiency
    for name in ("memory", "compute", "layer_overhead", "sequence_overhead", "request_overhead"):
        assert getattr(found, name) == pytest.approx(getattr(known, name), rel=0.02), name


def test_one_wild_row_does_not_move_the_fit_far():
    wild = [replace(FITTED[0], tpot=3 * FITTED[0].tpot), *FITTED[1:]]
    found = calibrate_serving(wild, FIT.model, recorded_system())
    assert mean_abs_error(found.compare(HELD_OUT)) < 0.07


def test_without_a_ttft_what_decode_pays_is_fitted_and_prefill_is_kept():
    rows = [replace(row, ttft=0.0) for row in FITTED]
    base = recorded_system().with_efficiency(Efficiency(compute=0.5, compute_16bit=0.7))
    fit = calibrate_serving(rows, FIT.model, base)
    assert set(fit.parameters) == {"memory", "layer_overhead", "sequence_overhead"}
    assert (fit.efficiency.compute, fit.efficiency.compute_16bit) == (0.5, 0.7)
    assert any("no row has a TTFT" in doubt for doubt in fit.doubts)


def test_a_fit_carries_over_to_another_device_by_its_data_sheet():
    h200 = DEVICES["h200"]
    system = System(h200, Topology.for_device(h200, 8), vllm_all_reduce(), FIT.efficiency)
    row = ServingRow(2, 1024, 1024, 4)
    there = closed_loop(FIT.model, system, row, kv_capacity(FIT.model, h200)(row))
    here = FIT.predict(row)
    reading = here.decode.terms["weights"] + here.decode.terms["KV cache"]
    saved = reading * (1 - DEVICES["h100"].memory_bandwidth / h200.memory_bandwidth)
    assert here.decode.seconds - there.decode.seconds == pytest.approx(saved, rel=0.05)


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([], "0 rows have a TPOT"),
        (FITTED[:2], "2 rows have a TPOT"),
        ([row for row in FITTED if row.tp == 2], "all rows have TP 2"),
        ([row for row in FITTED if row.concurrency == 4] * 2, "all rows have 4 clients"),
        ([replace(r, ttft=r.ttft * (r.tp == 2)) for r in FITTED], "only TP 2 has a TTFT"),
    ],
)
def test_rows_that_cannot_tell_the_figures_apart_are_refused(rows, named):
    with pytest.raises(ValueError, match=named):
        calibrate_serving(rows, FIT.model, recorded_system())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tp", 0),
        ("prompt_tokens", 1.5),
        ("output_tokens", -1),
        ("concurrency", True),
        ("tpot", float("nan")),
        ("ttft", float("inf")),
        ("length_share", 1.1),
        ("requests_per_client", 0),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_the_fields_name(field, value):
    with pytest.raises(ValueError, match=f"{field} is"):
        replace(ROWS[0], **{field: value})


def test_no_rows_have_no_error():
    with pytest.raises(ValueError, match="there is no row"):
        mean_abs_error([])


def test_capacity_is_none_where_the_weights_do_not_fit():
    capacity = kv_capacity(resolve_model("llama-3.1-70b"), DEVICES["h100"])
    assert capacity(ServingRow(1, 1024, 1024, 4)) == 0
    with pytest.raises(ValueError, match="capacity is 0 sequences"):
        closed_loop(FIT.model, recorded_system(), ROWS[0], 0)


@pytest.mark.parametrize("name", [None, "h100_sxm/nccl/2.27.3/all_reduce"])
def test_with_other_collectives_the_bar_still_holds(name):
    device = DEVICES["h100"]
    preset = COLLECTIVE_PRESETS[name] if name else None
    fit = calibrate_serving(
        FITTED, FIT.model, System(device, Topology.for_device(device, 8), preset)
    )
    errors = fit.compare(HELD_OUT)
    assert mean_abs_error(errors) < 0.10
    assert max(error_cells(errors).values()) < 0.20
    assert mean_abs_error(errors) > mean_abs_error(FIT.compare(HELD_OUT))
