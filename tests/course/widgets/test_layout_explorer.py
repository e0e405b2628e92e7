"""The layout explorer: what the planner answers, whole and in every place."""

import json
import re

import pytest

from course.labels import Label
from course.widgets.layout_answer import answer_at
from course.widgets.layout_bars import STEP_PARTS, memory_parts, step_parts
from course.widgets.layout_controls import BATCHES, CONTROLS, LIMITS, NUMBERS, OFFERED, START, at
from course.widgets.layout_explorer import LayoutExplorer
from course.widgets.layout_view import view_of
from labkit.plan.engine_flags import ENGINES
from labkit.plan.search import search
from labkit.plan.steptime import TERMS


def moved(**choice: int) -> dict[str, int]:
    return {**START, **choice}


@pytest.fixture(scope="module")
def explorer() -> LayoutExplorer:
    return LayoutExplorer()


def test_the_start_is_the_planners_own_answer():
    found = answer_at(at(START))
    best = search(at(START).question).best
    assert best is not None
    assert found.best is not None
    assert (found.best.layout, found.best.batch) == (best.layout, best.batch)
    assert best.title in view_of(START).headline


@pytest.mark.parametrize("control", [control for control in CONTROLS if control.name != "model"])
def test_every_position_near_the_start_has_an_answer(control):
    for index in range(len(control.options)):
        shown = view_of(moved(**{control.name: index}))
        json.dumps(shown.as_data(), allow_nan=False)
        assert shown.headline
        assert Label.MODELLED.symbol in shown.origin
        assert shown.is_good or shown.reasons
        for _, cells in shown.rows:
            assert len(cells) == len(shown.columns)
            for bar in (bar for cell in cells for bar in cell.bars):
                assert 0 <= bar.left <= bar.left + bar.width <= 100.0001


@pytest.mark.parametrize("index", range(len(OFFERED)))
def test_every_model_has_an_answer_on_eight_gpus(index):
    shown = view_of(moved(model=index))
    assert shown.rows
    assert shown.is_good or shown.reasons


def test_bars_have_every_term_and_sum():
    assert sorted(t for _, terms in STEP_PARTS.values() for t in terms) == sorted(TERMS)
    best = answer_at(at(START)).best
    assert best is not None
    assert sum(p.size for p in step_parts(best.decode)) == pytest.approx(best.decode.seconds)
    stage = best.memory.stages[0]
    assert sum(p.size for p in memory_parts(best.memory)) == pytest.approx(stage.usable_bytes)


def test_no_limit_and_the_largest_batch_have_no_answer_and_a_way_out():
    shown = view_of(moved(limit=0))
    assert not shown.is_good
    assert "nothing limits the batch" in shown.reasons[0]
    assert view_of(moved(**shown.jumps[0].choice)).is_good
    assert view_of(moved(limit=0, batch=BATCHES.index(8))).is_good


def test_what_no_layout_keeps_names_the_nearest():
    shown = view_of(moved(limit=LIMITS.index(8)))
    assert shown.headline == "No layout serves."
    assert re.match(r"Nearest, TP 8: TPOT .* is above the limit of 8 ms", shown.reasons[0])


def test_what_does_not_fit_says_so():
    shown = view_of(moved(gpus=NUMBERS.index(1)))
    assert not shown.is_good
    assert "are more than the" in shown.reasons[0]


def test_reasons_and_the_flags_of_every_engine_are_in_sight():
    shown = view_of(START)
    said = " ".join(shown.sentences)
    assert "For it: " in said
    assert "Against it: " in said
    assert [name.partition(",")[0] for name, _ in shown.commands] == list(ENGINES)
    assert "vllm serve Qwen/Qwen2.5-72B --tensor-parallel-size 8" in shown.commands[0][1]


def test_the_twin_says_what_the_page_says(explorer):
    body, text = explorer.static()
    shown = view_of(START)
    assert shown.headline in text
    for sentence in shown.sentences:
        assert sentence in text
    for _, lines in shown.commands:
        assert lines in text
    for name, _ in shown.rows:
        assert name in text
        assert name in body
    assert [
        m for ms, m in zip(LIMITS[1:], explorer.limits_table().rows, strict=True) if not ms
    ] == []
    bars, pareto = explorer.pictures()
    assert "TP 8" in bars[0]["text/plain"]
    assert "limit" in pareto[0]["text/plain"]


def test_a_higher_limit_never_gives_fewer_tokens(explorer):
    given = [row[3] for row in explorer.limits_table().rows if row[3]]
    assert given == sorted(given, key=lambda words: float(words.replace(",", "")))
