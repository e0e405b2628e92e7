"""Presets of collectives: what they reproduce, and that each says how far off it is."""

from collections import Counter

import pytest

from labkit.plan.calibration import calibrate, mean_abs_error
from labkit.plan.collective_presets import (
    COLLECTIVE_PRESETS,
    TEXTBOOK_NVLINK,
    TEXTBOOK_PCIE,
)
from labkit.plan.collectives import LaunchBound, OneOrTwoShot, Ring
from labkit.plan.recorded_collectives import GRAPH, recorded, recorded_names

MIB = 2**20
BAR = 0.06
WILD = "h100_sxm/sglang_graph/0.5.14/all_reduce"


def points_in_range(name, ranks=None):
    preset = COLLECTIVE_PRESETS[name]
    return [point for point in recorded(name, ranks) if preset.covers(point.payload_bytes)]


def test_vllm_0_19_on_h100_is_reproduced_within_6_percent_up_to_16_mib():
    points, preset = points_in_range(GRAPH), COLLECTIVE_PRESETS[GRAPH]
    assert len(points) == 17 * 3
    assert preset.valid_bytes == (256, 16 * MIB)
    assert isinstance(preset.model, OneOrTwoShot)
    assert mean_abs_error(preset.model, points) <= BAR, "one set of parameters for 2, 4, 8 GPUs"
    assert preset.error == pytest.approx(mean_abs_error(preset.model, points), abs=1e-3)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_a_fit_of_one_rank_count_is_nearer_there(n):
    points, preset = points_in_range(GRAPH, n), COLLECTIVE_PRESETS[GRAPH]
    alone = mean_abs_error(preset.model_for(n), points)
    assert preset.error_for(n) == pytest.approx(alone, abs=1e-3)
    assert alone < mean_abs_error(preset.model, points)
    assert alone <= BAR


def test_calibrating_the_recorded_points_gives_the_preset():
    fit, joint = (
        calibrate(points_in_range(GRAPH), "one_or_two_shot"),
        COLLECTIVE_PRESETS[GRAPH].joint,
    )
    for name, estimate in fit.parameters.items():
        kept = joint.parameters[name]
        assert (kept.value, kept.low, kept.high) == pytest.approx(
            (estimate.value, estimate.low, estimate.high), rel=5e-3
        )


def test_the_wild_point_of_sglang_is_named_and_spoils_nothing():
    """8 GPUs, 1 KiB: 38 us recorded, 3.7 us at 16 KiB."""
    (wild,) = [point for point in recorded(WILD, 8) if point.payload_bytes == 1024]
    assert wild.seconds == pytest.approx(38.1e-6, rel=0.01)
    preset = COLLECTIVE_PRESETS[WILD]
    assert (8, 1024) in preset.joint.outliers
    assert (8, 1024) in preset.by_ranks[8].outliers
    assert preset.model_for(8).seconds(8, 1024) == pytest.approx(3.4e-6, rel=0.1)
    assert preset.by_ranks[8].kept_error < BAR < preset.by_ranks[8].error
    refit = calibrate(points_in_range(WILD, 8), "one_or_two_shot")
    assert [outlier.point for outlier in refit.outliers] == [wild]


@pytest.mark.parametrize("name", recorded_names())
def test_every_preset_of_the_excerpt_is_as_far_off_as_it_says(name):
    """The excerpt has fewer points than the fit, so the error may be another, within limits."""
    preset = COLLECTIVE_PRESETS[name]
    for n in preset.by_ranks:
        if name == WILD and n != 8:
            continue
        error = mean_abs_error(preset.model_for(n), points_in_range(name, n))
        assert error <= 2 * preset.error_for(n) + 0.01


def test_every_system_implementation_and_collective_of_the_data_has_its_presets():
    counted = Counter((p.system, p.implementation, p.op) for p in COLLECTIVE_PRESETS.values())
    assert len(COLLECTIVE_PRESETS) == 56
    for system in ("h100_sxm", "a100_sxm", "l40s"):
        for implementation in (
            "nccl", "vllm_graph", "vllm_eager", "sglang_graph", "sglang_eager", "trtllm",
        ):  # fmt: skip
            assert counted[system, implementation, "all_reduce"] >= 1
        for op in ("all_gather", "reduce_scatter", "alltoall"):
            assert counted[system, "nccl", op] >= 1


@pytest.mark.parametrize("name", COLLECTIVE_PRESETS)
def test_a_preset_carries_label_source_range_and_error(name):
    preset = COLLECTIVE_PRESETS[name]
    assert preset.label == "captured"
    assert "aiconfigurator-core 0.12.0" in preset.source
    assert "Apache-2.0" in preset.source
    assert preset.valid_bytes[1] == 16 * MIB
    assert set(preset.by_ranks) == {2, 4, 8}
    for fit in (preset.joint, *preset.by_ranks.values()):
        assert fit.kept_error > 0
        assert all(e.low <= e.value <= e.high for e in fit.parameters.values())
        if fit.fits:
            assert fit.kept_error <= 0.10
    assert preset.version in preset.title
    assert preset.name == name


def test_eager_presets_have_the_launch_in_them():
    eager = COLLECTIVE_PRESETS["h100_sxm/vllm_eager/0.19.0/all_reduce"]
    assert isinstance(eager.model, LaunchBound)
    assert eager.model.launch == pytest.approx(23e-6, rel=0.05)


def test_where_one_set_does_not_fit_the_one_of_the_rank_count_is_chosen():
    pcie, nvlink = (
        COLLECTIVE_PRESETS["l40s/vllm_graph/0.22.0/all_reduce"],
        COLLECTIVE_PRESETS[GRAPH],
    )
    assert not pcie.joint.fits
    assert pcie.chosen_model(4) is pcie.by_ranks[4].model
    assert nvlink.chosen_model(4) is nvlink.model
    assert nvlink.model_for(16) is nvlink.model, "not recorded: the one set"
    assert "over PCIe" in pcie.note


def test_series_that_repeat_another_say_so():
    twin = COLLECTIVE_PRESETS["h100_sxm/trtllm/sglang-0.5.6.post2/all_reduce"]
    assert "the same points as h100_sxm/trtllm/1.2.0rc5/all_reduce" in twin.note
    assert "same points" not in COLLECTIVE_PRESETS[GRAPH].note


def test_the_textbook_is_assumed_and_covers_nothing():
    assert TEXTBOOK_NVLINK.model == Ring(hop_latency=2e-6, bandwidth=450e9)
    assert TEXTBOOK_PCIE.model == Ring(hop_latency=5e-6, bandwidth=25e9)
    for textbook in (TEXTBOOK_NVLINK, TEXTBOOK_PCIE):
        assert textbook.label == "assumed"
        assert textbook.error is None
        assert textbook.error_for(8) is None
        assert textbook.model_for(8) is textbook.chosen_model(8) is textbook.model
        assert not textbook.covers(MIB)
