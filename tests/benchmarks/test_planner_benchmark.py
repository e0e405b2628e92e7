"""The planner benchmark's parts: bars, questions, the peer's tables. No timings, no peer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers.aiconfigurator_cli import PeerAnswer, ask_aiconfigurator, find_python, ranked
from benchmarks.planner import RESULT, peer_lines, search_lines
from benchmarks.planner_bars import (
    HELD_BY_TESTS,
    HeldBar,
    TimeBar,
    counts,
    peer_bar,
    serving_bars,
    speed_bars,
)
from benchmarks.planner_questions import BAR_GPUS, SIZES, dense_70b, large_moe

TABLES = """\
agg Top Configurations: (Ranked by tokens/s/gpu)
+------+---------+--------------+---------------+----------+----------+
| Rank | backend | tokens/s/gpu | tokens/s/user | replicas | parallel |
+------+---------+--------------+---------------+----------+----------+
|  1   |  trtllm |    490.95    |     33.62     |    2     |  tp4pp1  |
|  2   |  trtllm |    432.93    |     34.23     |    1     |  tp8pp1  |
+------+---------+--------------+---------------+----------+----------+
disagg Top Configurations: (Ranked by tokens/s/gpu)
| Rank | backend | tokens/s/gpu | tokens/s/user | replicas | (p)parallel | (d)parallel |
|  1   |  trtllm |    504.35    |     33.60     |    1     |    tp1pp1   |    tp4pp1   |
"""


def search(gpus: int, seconds: float) -> dict[str, object]:
    return {
        "gpus": gpus,
        "processor_seconds": seconds,
        "ranked": 520,
        "rejected": 285,
        "best": "TP 8",
    }


ESTIMATES = {
    "layouts": 520,
    "median_seconds": 50e-6,
    "slowest_seconds": 150e-6,
    "slowest": "TP 1 x PP 32",
}


@pytest.mark.parametrize(("seconds", "ok"), [((1.0, 1.5, 9.0), True), ((1.0, 2.1, 9.0), False)])
def test_the_bar_is_about_the_median_of_searches_of_its_size(seconds, ok):
    searches = [search(BAR_GPUS, each) for each in seconds] + [search(8, 0.01), search(512, 99.0)]
    found, estimate = speed_bars(searches, ESTIMATES)
    assert found.ok is ok
    assert "671B MoE on 256 GPUs" in str(found)
    assert estimate.ok
    assert "150 us (bar at most 200 us)" in str(estimate)


def test_what_was_not_measured_is_missed():
    assert [bar.ok for bar in speed_bars([], None)] == [False, False]
    assert not peer_bar([0.1], []).ok
    assert not HeldBar("tests", None, None).ok
    assert str(HeldBar("tests", None, None)).startswith("not run")


def test_a_failed_test_misses_its_bar():
    assert HeldBar("tests", 3, 0).ok
    assert not HeldBar("tests", 3, 1).ok
    assert not HeldBar("tests", 0, 0).ok
    assert TimeBar("time", 0.5, 1.0).as_dict()["ok"] is True


def test_the_peer_is_compared_round_by_round():
    bar = peer_bar([0.1, 0.2, 0.1], [30.0, 40.0, 50.0])
    assert bar.value == 300.0
    assert bar.ok


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("....\n40 passed in 3.21s\n", (40, 0)),
        ("1 failed, 39 passed, 2 skipped in 3.21s", (39, 1)),
        ("==== 3 passed, 2 errors in 1.00s ====", (3, 2)),
        ("no tests ran in 0.01s", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_tests_of_a_bar_are_counted(output, expected):
    assert counts(output) == expected


def test_serving_bars_are_kept_on_rows_that_were_not_fitted():
    mean, worst = serving_bars()
    assert mean.ok
    assert worst.ok
    assert mean.value <= worst.value
    assert "25 other rows" in mean.name


def test_questions_are_what_the_bars_name():
    assert BAR_GPUS in SIZES
    question = large_moe()
    assert question.gpus == BAR_GPUS
    assert round(question.model.num_parameters / 1e9) == 671
    assert round(dense_70b().model.num_parameters / 1e9) in (70, 71)


@pytest.mark.parametrize("paths", HELD_BY_TESTS.values())
def test_tests_that_hold_a_bar_exist(paths):
    tests = Path(__file__).parents[1]
    for path in paths:
        assert list(tests.glob(path)), f"no test file {path}"


def test_the_peers_tables_are_read():
    rows = ranked(TABLES)
    assert [(row["mode"], row["rank"]) for row in rows] == [("agg", 1), ("agg", 2), ("disagg", 1)]
    assert rows[0]["layout"] == {"parallel": "tp4pp1"}
    assert rows[2]["layout"] == {"(p)parallel": "tp1pp1", "(d)parallel": "tp4pp1"}
    assert rows[1]["tokens_per_second_per_gpu"] == 432.93


def test_a_peer_that_is_not_there_is_said_to_be():
    assert find_python("some/python") == "some/python"
    answer = ask_aiconfigurator(None, dense_70b())
    assert answer.refusal.startswith("not installed")
    lost = ask_aiconfigurator("no/such/python", dense_70b())
    assert lost.seconds is None
    assert lost.refusal == "its Python cannot be started: No such file or directory"


def test_lines_name_seconds_and_layouts_of_both():
    ours = [
        {
            "clock_seconds": 0.012,
            "found": [{"layout": "TP 8", "mode": "one pool", "tokens_per_second_per_gpu": 434.0}],
        }
    ]
    theirs = PeerAnswer(44.8, "0.12.0", tuple(ranked(TABLES)))
    text = "\n".join(peer_lines(ours, [theirs, replace(theirs, refusal="no answer", found=())]))
    for words in ("12 ms", "44.8 s, version 0.12.0", "no answer", "2 x tp4pp1", "tp1pp1 + tp4pp1"):
        assert words in text
    assert "520 layouts ranked" in search_lines([search(256, 1.0)], ESTIMATES)[0]


@pytest.mark.skipif(not RESULT.exists(), reason="not stored yet")
def test_the_stored_result_has_every_bar_and_hides_no_miss():
    stored = json.loads(RESULT.read_text())
    found = speed_bars(stored["searches"], stored["estimates"])
    assert [bar.as_dict() for bar in found] == [
        bar for bar in stored["bars"] if bar["name"] in {each.name for each in found}
    ]
    assert {bar["name"] for bar in stored["bars"]} >= set(HELD_BY_TESTS)
    assert stored["provenance"]["label"] == "measured"
