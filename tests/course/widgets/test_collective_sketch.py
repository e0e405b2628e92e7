"""The collective sketch: regimes and crossing of the planner's sketch, drawn over every link."""

import json
from itertools import pairwise

import pytest

from course.labels import Label
from course.widgets.collective_sketch import CollectiveSketch
from course.widgets.sketch_controls import BATCHES, SIZES, SketchControls
from course.widgets.sketch_links import ALGORITHMS, BANDWIDTHS, FREE, NVLINK, OFFERED, PCIE, links
from course.widgets.sketch_steps import compared, cost, crossing, crossing_in_words, pays, step
from course.widgets.sketch_view import chart, headline, view
from labkit.plan.collective_presets import COLLECTIVE_PRESETS
from labkit.plan.collectives import CostModel, Ring, TwoShot
from labkit.plan.decode_sketch import SketchRegime, sketch

SLOW = Ring(150e-6, 2e9)


def controls(measured: dict[str, CostModel] | None = None) -> SketchControls:
    return SketchControls(links(measured))


def moved(given: SketchControls, **choice: int) -> dict[str, int]:
    return {**given.start, **choice}


def test_start_is_the_sketch_of_the_planner_on_a_textbook_ring():
    here = controls()
    position = here.at(here.start)
    assert step(position, position.link) == sketch(1, 8192, 80, 8, Ring(5e-6, 25e9))
    assert step(position, NVLINK) == sketch(1, 8192, 80, 8, Ring(2e-6, 450e9))


def test_every_regime_is_one_control_away_from_the_start():
    here = controls()
    reached = {
        step(position, position.link).regime
        for control in here.all
        for index in range(len(control.options))
        for position in [here.at(moved(here, **{control.name: index}))]
    }
    assert reached == set(SketchRegime)


@pytest.mark.parametrize(
    ("choice", "regime", "is_good"),
    [
        ({"link": 0}, SketchRegime.HELPS, True),
        ({}, SketchRegime.STILL_WINS, True),
        ({"scaling": 0}, SketchRegime.HURTS, False),
    ],
)
def test_regime_is_named_and_explained(choice: dict[str, int], regime: SketchRegime, is_good: bool):
    here = controls()
    shown = view(here.at(moved(here, **choice)))
    assert shown.headline.lower() == f"{regime.value}.".lower()
    assert regime.sentence in shown.sentences
    assert shown.is_good == is_good


def test_a_slower_free_link_is_never_better():
    here = controls()
    free = here.menu.index(FREE)
    steps = [
        step(position, FREE).step_seconds
        for index in range(len(BANDWIDTHS))
        for position in [here.at(moved(here, link=free, bandwidth=index, batch=5))]
    ]
    assert all(slow > fast for slow, fast in pairwise(steps))


def test_free_sliders_move_the_free_link_only():
    here = controls()
    free = here.menu.index(FREE)
    assert here.at(moved(here, latency=0)) == here.at(here.start)
    assert here.at(moved(here, link=free, latency=0)) != here.at(moved(here, link=free))


def test_algorithm_counts_where_the_link_runs_any():
    here = controls()
    for name, index in zip(ALGORITHMS, range(len(ALGORITHMS)), strict=True):
        position = here.at(moved(here, algorithm=index))
        assert cost(position, PCIE) == ALGORITHMS[name](5e-6, 25e9)
        [captured, *_] = [link for link in here.menu if link.label is Label.CAPTURED]
        assert cost(position, captured) == COLLECTIVE_PRESETS[f"{OFFERED[0]}/all_reduce"].model_for(
            8
        )


def test_two_shots_take_two_steps_of_the_link():
    two, best = ALGORITHMS["two-shot"](5e-6, 1e9), ALGORITHMS["one- or two-shot, the cheaper"]
    assert two.seconds(4, 0) == pytest.approx(2 * ALGORITHMS["one-shot"](5e-6, 1e9).seconds(4, 0))
    for size in (1e3, 1e8):
        assert best(5e-6, 1e9).seconds(4, size) == min(
            ALGORITHMS[name](5e-6, 1e9).seconds(4, size) for name in ("one-shot", "two-shot")
        )


def test_crossing_is_where_split_and_one_gpu_cost_the_same():
    here = controls()
    position = here.at(here.start)
    batch = crossing(position, PCIE)
    assert batch is not None
    there = step(position, PCIE, batch)
    assert there.step_seconds == pytest.approx(there.one_gpu_seconds, rel=2e-3)
    assert f"stops paying at a batch of about {batch:.0f}" in crossing_in_words(position)
    [(x, y, words)] = chart(position).marks
    assert (x, y) == (batch, pytest.approx(there.one_gpu_seconds))
    assert words == f"crossing: batch {batch:.0f}"


def test_no_crossing_means_the_same_answer_at_every_batch():
    here = controls()
    for choice, always in (({"link": 0}, True), ({"scaling": 0}, False)):
        position = here.at(moved(here, **choice))
        assert crossing(position, position.link) is None
        assert {pays(step(position, position.link, batch)) for batch in BATCHES} == {always}
        assert "at every batch" in crossing_in_words(position)
        assert chart(position).marks == ()


def test_textbook_captured_and_measured_models_lie_over_the_chosen_one():
    here = controls({"gloo": SLOW, "shared memory": TwoShot(25e-6, 3e9)})
    assert [len(overlay) for overlay in here.overlays] == [0, 2, 3, 3]
    position = here.at(moved(here, overlay=2))
    labels = [link.label for link, _ in compared(position)]
    assert labels == [Label.ASSUMED, Label.ASSUMED, Label.CAPTURED, Label.MEASURED]
    curves = chart(position).curves
    assert [curve.name for curve in curves][::4] == ["one GPU", "gloo"]
    assert len({curve.look for curve in curves}) == len(curves)
    assert "measured on this machine, carried over to 8 ranks" in view(position).origin


def test_a_link_is_not_laid_over_itself():
    here = controls()
    position = here.at(moved(here, link=here.menu.index(NVLINK)))
    assert [link.name for link, _ in compared(position)].count(NVLINK.name) == 1


def test_links_beyond_their_records_are_named():
    here = controls()
    captured = next(i for i, link in enumerate(here.menu) if link.label is Label.CAPTURED)
    name = here.menu[captured].name
    for choice, is_beyond in (({}, False), ({"tp": SIZES.index(16)}, True), ({"batch": 10}, False)):
        shown = view(here.at(moved(here, link=captured, **choice)))
        said = [sentence for sentence in shown.sentences if sentence.startswith("Not recorded")]
        assert [name in sentence for sentence in said] == [True] * is_beyond


def test_bars_are_the_steps_and_the_longest_fills_its_track():
    here = controls()
    for batch in (0, 5, 10):
        position = here.at(moved(here, batch=batch))
        ends = [
            cells[0].bars[-1].left + cells[0].bars[-1].width for _, cells in view(position).rows
        ]
        steps = [result for _, result in compared(position)]
        totals = [steps[0].one_gpu_seconds, *(result.step_seconds for result in steps)]
        assert max(ends) == pytest.approx(100)
        assert ends == pytest.approx([100 * total / max(totals) for total in totals])


def test_paper_has_the_conclusion_every_link_and_every_label():
    paper = CollectiveSketch({"gloo": SLOW})
    here = paper.controls
    for shown in paper.static():
        assert headline(step(paper.start, PCIE)) in shown
        assert "The split stops paying at a batch of about" in shown
        assert all(link.name in shown for link in here.menu)
        assert all(label in shown for label in Label)
    assert [row[0] for row in paper.sizes_table().rows] == list(SIZES)


def test_picture_is_titled_with_its_finding():
    [(data, _)] = CollectiveSketch().pictures()
    title = data["text/plain"].splitlines()[0]
    assert title.startswith("TP 8, textbook PCIe: the split stops paying at a batch of about ")


def test_the_page_gets_plain_data():
    widget = CollectiveSketch().widget
    assert widget is not None
    assert json.loads(json.dumps(widget.view))["chart"]["curves"][0]["name"] == "one GPU"
