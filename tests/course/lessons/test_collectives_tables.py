"""Tables of lesson 01 say what labkit computes, and what FACTS and the recorded points hold."""

import pytest

from course.lessons import collectives_tables as tables
from course.lessons import recorded_tables
from labkit.experiments.collective_rows import CollectiveRow, CollectiveTimes
from labkit.experiments.provenance import Provenance
from labkit.plan.collectives import Ring
from labkit.plan.presets import PRESETS

LARGE = PRESETS["qwen2.5-72b"].spec


def test_one_shot_kernels_have_a_floor_nearly_flat_in_the_number_of_gpus():
    rows = {str(row[0]): row[1:] for row in recorded_tables.floors_table().rows}
    assert rows["vLLM 0.19.0 custom, CUDA graph, H100 SXM"] == ("4.23 us", "4.52 us", "4.51 us")
    assert rows["NCCL 2.27.3, H100 SXM"] == ("6.36 us", "9.45 us", "15.7 us")
    [textbook] = [row for name, row in rows.items() if "450 GB/s" in name]
    assert textbook == ("4 us", "12 us", "28 us")


def test_the_textbook_is_far_off_where_decode_is_and_right_far_above():
    table = recorded_tables.errors_table([2**10, 2**20, 2**24])
    [eight] = [row for row in table.rows if row[1] == 8 and "vLLM 0.19.0" in str(row[0])]
    assert eight[2:] == ("+521%", "+116%", "+1%")


def test_a_size_that_was_not_recorded_is_left_blank():
    assert {row[-1] for row in recorded_tables.errors_table([2**10, 3]).rows} == {"-"}


def test_a_launch_costs_several_times_the_meeting():
    assert recorded_tables.launches_table().rows[0] == (2, "21.2 us", "4.23 us")


def test_bus_bandwidth_is_reached_far_above_inference_sizes():
    rows = dict(recorded_tables.bus_table(8).rows)  # type: ignore[arg-type]
    assert rows["1 MiB"] == "72.2 GB/s"
    assert rows["256 MiB"] == "432 GB/s"


def test_tp_8_pays_more_than_the_textbook_says_on_h100_and_not_at_all_over_pcie():
    gains = {str(row[0]): float(str(row[-1])) for row in recorded_tables.steps_table(LARGE, 1).rows}
    textbook, pcie = gains["textbook ring, 450 GB/s and 2 us a hop"], min(gains.values())
    assert gains["vLLM 0.19.0 custom, CUDA graph, H100 SXM"] > gains["NCCL 2.27.3, H100 SXM"]
    assert gains["NCCL 2.27.3, H100 SXM"] > textbook > 1 > pcie


def test_one_shot_is_faster_below_the_crossing_only():
    crossing = recorded_tables.shots_model().crossing_bytes(8)
    sizes = [2**14, 2**16, 2**18, 2**22]
    faster = [row[-1] for row in recorded_tables.shots_table(8, sizes).rows]
    assert faster == ["one" if size < crossing else "two" for size in sizes]


def test_latency_is_nearly_all_at_batch_1_and_less_in_large_batches():
    rows = recorded_tables.latency_table(LARGE, (1, 512), 8).rows
    small, large = ([int(str(cell).rstrip("%")) for cell in row[2:]] for row in rows)
    assert all(cell > 90 for cell in small)
    assert all(cell < 50 for cell in large)


@pytest.fixture
def here() -> CollectiveTimes:
    link = Ring(hop_latency=1e-5, bandwidth=1e9)
    rows = tuple(
        CollectiveRow("all_reduce", name, 2, size, 1, (link.seconds(2, size),))
        for name in tables.MODELS
        for size in (4**k * 1024 for k in range(7))
    )
    return CollectiveTimes(rows, "float32", "cpu", "in turn", (), Provenance.here())


def test_a_fit_finds_the_link_that_made_the_points(here: CollectiveTimes):
    fit = tables.fit_here(here, "gloo")
    assert fit.parameters["hop_latency"].value == pytest.approx(1e-5, rel=1e-3)
    assert fit.parameters["bandwidth"].value == pytest.approx(1e9, rel=1e-3)
    [ring] = [row for row in tables.fits_table(here).rows if row[0] == "gloo"]
    assert ring[1:5] == ("ring", "10 us", "1 GB/s", "0%")


def test_every_curve_is_named_and_its_points_are_in_the_text(here: CollectiveTimes):
    picture = tables.times_picture(here, "Times")
    assert all(f"{name}: 1,024 B" in picture.text for name in tables.MODELS)
    assert "(measured)" in picture.text
