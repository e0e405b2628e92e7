"""Fits of cost models to points: found again, robust, honest about doubt and misfit."""

import random
from statistics import linear_regression

import pytest

from labkit.plan.calibration import Point, calibrate, mean_abs_error
from labkit.plan.calibration_families import FAMILIES, LAUNCHED, Family, hierarchical
from labkit.plan.collectives import CostModel, OneOrTwoShot, OneShot, Ring, TwoShot

US, GB, MIB = 1e-6, 1e9, 2**20
SIZES = tuple(2**power for power in range(8, 25, 2))
TRUE = {
    "hop_latency": 2 * US,
    "peer_latency": 1.5 * US,
    "latency": 5 * US,
    "launch": 11 * US,
    "bandwidth": 200 * GB,
    "one_shot.latency": 4 * US,
    "one_shot.bandwidth": 250 * GB,
    "two_shot.latency": 9 * US,
    "two_shot.bandwidth": 350 * GB,
    "inner.hop_latency": 2 * US,
    "inner.bandwidth": 300 * GB,
    "outer.hop_latency": 12 * US,
    "outer.bandwidth": 40 * GB,
}


def points_of(
    model: CostModel, counts=(2, 4, 8), sizes=SIZES, noise: float = 0.0, seed: int = 0
) -> list[Point]:
    draw = random.Random(seed)
    return [
        Point(n, size, model.seconds(n, size) * (1 + noise * draw.gauss(0, 1)))
        for n in counts
        for size in sizes
    ]


def true_model(family: Family) -> CostModel:
    return family.build(*(TRUE[name] for name in family.parameters))


def check_found_again(fit, family):
    assert tuple(fit.parameters) == family.parameters
    for name, estimate in fit.parameters.items():
        assert estimate.value == pytest.approx(TRUE[name], rel=1e-2), name
    assert fit.mean_abs_error < 1e-3
    assert fit.fits
    assert not fit.outliers


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_are_found_again(name):
    family = FAMILIES[name]
    check_found_again(calibrate(points_of(true_model(family)), name), family)


@pytest.mark.parametrize("name", LAUNCHED)
def test_a_launch_is_told_from_what_grows_with_the_ranks(name):
    family = LAUNCHED[name]
    check_found_again(calibrate(points_of(true_model(family)), name, launch=True), family)


def test_two_levels_are_told_apart():
    family = hierarchical(4)
    points = points_of(true_model(family), counts=(2, 4, 8, 16))
    check_found_again(calibrate(points, "hierarchical", inner_size=4), family)


def test_the_doubt_holds_the_truth_most_of_the_time():
    held = []
    for seed in range(40):
        fit = calibrate(points_of(Ring(2 * US, 200 * GB), noise=0.05, seed=seed), "ring")
        held += [e.low <= TRUE[name] <= e.high for name, e in fit.parameters.items()]
    assert 0.85 <= sum(held) / len(held) <= 1


def test_more_noise_means_more_doubt():
    quiet, loud = (
        calibrate(points_of(Ring(2 * US, 200 * GB), noise=noise), "ring").parameters["bandwidth"]
        for noise in (0.01, 0.1)
    )
    assert loud.high / loud.low > quiet.high / quiet.low > 1


def test_large_messages_do_not_drown_the_latency():
    """10 % at 64 MiB is four times the whole latency: plain least squares is lost there."""
    ring, wobble = Ring(2 * US, 200 * GB), {2**26: 1.1, 2**30: 0.97}
    sizes = tuple(2**power for power in range(10, 31, 4))
    points = [
        Point(p.ranks, p.payload_bytes, p.seconds * wobble.get(int(p.payload_bytes), 1))
        for p in points_of(ring, (4,), sizes)
    ]
    plain = linear_regression(
        [ring.wire_bytes(4, p.payload_bytes) for p in points], [p.seconds for p in points]
    )
    assert not 1 * US < plain.intercept / ring.steps(4) < 3 * US
    assert calibrate(points).parameters["hop_latency"].value == pytest.approx(2 * US, rel=0.02)


@pytest.mark.parametrize("factor", [10.0, 0.1])
@pytest.mark.parametrize("model", ["one_or_two_shot", "ring"])
def test_one_wild_point_does_not_spoil_a_fit_and_is_named(model, factor):
    points = points_of(true_model(FAMILIES[model]), noise=0.02)
    clean = calibrate(points, model)
    wild = Point(8, 2**10, factor * points[19].seconds)
    assert (points[19].ranks, points[19].payload_bytes) == (8, 2**10)
    fit = calibrate([*points[:19], wild, *points[20:]], model)
    assert [outlier.point for outlier in fit.outliers] == [wild]
    assert "Set aside as outlier: 8 ranks, 1 KiB: measured" in fit.verdict
    assert fit.fits
    for name, estimate in fit.parameters.items():
        assert estimate.value == pytest.approx(clean.parameters[name].value, rel=0.05), name
    assert fit.mean_abs_error > fit.kept_error
    without = calibrate([*points[:19], *points[20:]], model)
    for name, estimate in fit.parameters.items():
        assert estimate.value == pytest.approx(without.parameters[name].value, rel=1e-4), name


def test_a_model_that_does_not_fit_says_so_and_by_how_much():
    points = points_of(OneOrTwoShot(OneShot(4 * US, 250 * GB), TwoShot(9 * US, 350 * GB)))
    fit = calibrate(points, "ring")
    assert not fit.fits
    assert fit.kept_error > 0.10
    assert f"ring does not fit: off by {fit.kept_error:.1%} on average" in fit.verdict
    assert str(fit.worst.point) in fit.verdict
    assert calibrate(points, "one_or_two_shot").fits


def test_the_error_is_that_of_the_model_over_the_points():
    points = points_of(Ring(2 * US, 200 * GB), noise=0.05)
    fit = calibrate(points)
    by_hand = [abs(fit.model.seconds(p.ranks, p.payload_bytes) / p.seconds - 1) for p in points]
    assert fit.mean_abs_error == pytest.approx(sum(by_hand) / len(by_hand))
    assert fit.mean_abs_error == mean_abs_error(fit.model, points)
    assert abs(fit.worst.error) == pytest.approx(max(by_hand))


def test_the_tolerance_decides_what_fits():
    points = points_of(Ring(2 * US, 200 * GB), noise=0.05)
    assert calibrate(points).fits
    assert not calibrate(points, tolerance=0.01).fits


def test_a_parameter_that_the_points_do_not_show_is_named():
    small_ones = points_of(Ring(50 * US, 200 * GB), sizes=(8, 64, 512), noise=0.02)
    fit = calibrate(small_ones)
    assert not fit.parameters["bandwidth"].is_determined
    assert fit.parameters["hop_latency"].is_determined
    assert "do not pin down bandwidth" in fit.verdict


def test_the_same_points_give_the_same_fit():
    points = points_of(true_model(FAMILIES["one_or_two_shot"]), noise=0.05)
    assert calibrate(points, "one_or_two_shot") == calibrate(points, "one_or_two_shot")


def test_the_order_of_the_points_does_not_matter():
    points = points_of(true_model(FAMILIES["one_or_two_shot"]), noise=0.05)
    one, other = (calibrate(p, "one_or_two_shot").parameters for p in (points, points[::-1]))
    for name, estimate in one.items():
        assert estimate.value == pytest.approx(other[name].value, rel=1e-3)


GOOD = points_of(Ring(2 * US, 200 * GB))
ONE_COUNT = points_of(Ring(2 * US, 200 * GB), counts=(4,))


@pytest.mark.parametrize(
    ("points", "arguments", "words"),
    [
        (GOOD, {"model": "rign"}, "no model called 'rign'; legal: ring, "),
        ([], {}, "0 points are too few for the 2 parameters of ring; give at least 3"),
        (GOOD[:2], {}, "2 points are too few"),
        (GOOD[:4], {"model": "one_or_two_shot"}, "4 points are too few for the 4 parameters"),
        ([Point(n, 1024, n * US) for n in (2, 3, 4, 8)], {}, "1 size of payload, and ring needs"),
        ([*GOOD[:3]] * 3, {"model": "one_or_two_shot"}, "3 sizes of payload.*at least 4"),
        (ONE_COUNT, {"launch": True}, r"1 rank count \(4 ranks\), and ring needs at least 2"),
        (GOOD, {"model": "one_shot", "launch": True}, "latency of one_shot is flat"),
        (GOOD, {"inner_size": 4}, "inner_size belongs to hierarchical"),
        (GOOD, {"model": "hierarchical"}, "inner_size is None"),
        (GOOD, {"model": "hierarchical", "inner_size": 8}, "2 sizes across groups of 8 ranks"),
        (ONE_COUNT, {"model": "hierarchical", "inner_size": 2}, "needs at least 2 to tell"),
        ([*GOOD, Point(1, 1024, US)], {}, "point 27 has 1 ranks; a collective needs at least 2"),
        ([*GOOD, Point(2, 1024, 0)], {}, "point 27 has seconds 0"),
        ([Point(2, 1024, float("nan")), *GOOD], {}, "point 0 has seconds nan"),
        ([*GOOD, Point(2, 1024, float("inf"))], {}, "point 27 has seconds inf"),
        ([*GOOD, Point(2, -8, US)], {}, "point 27 has payload_bytes -8"),
    ],
)
def test_points_that_fix_nothing_are_refused_by_name(points, arguments, words):
    with pytest.raises(ValueError, match=words):
        calibrate(points, **arguments)


def test_no_points_have_no_error():
    with pytest.raises(ValueError, match="no point to compare"):
        mean_abs_error(Ring(0, 1), [])
