"""The timeline's title and numbers come from the traces, and two draws of them are the same."""

from collections.abc import Callable
from pathlib import Path

import pytest

from course.timeline import timeline
from labkit.experiments.tensor_parallel import load_traced, trace_decode_step
from labkit.plan.decoder import DecoderSpec
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import Trace, TraceEvent


def event(started: float, seconds: float) -> TraceEvent:
    return TraceEvent("all_reduce", "world", (1,), "float32", 4, 4, seconds, "a.py:1 f", 1, started)


FAST = Trace(0, [event(100.0, 0.005), event(100.006, 0.004)])
SLOW = Trace(1, [event(100.004, 0.001), event(100.009, 0.001)])


def test_title_is_the_finding():
    """Of 2 x 10 ms, rank 0 waits 7, and both exchange 2."""
    title = timeline([FAST, SLOW]).title
    assert title == ("A step over 2 ranks: 45 % computing, 35 % waiting, 20 % exchanging")


def test_one_rank_is_told_apart():
    assert timeline([FAST]).title == (
        "A step on 1 rank: 90 % of it passes in 2 collectives, which send nothing"
    )


def test_title_can_be_given():
    assert timeline([FAST, SLOW], title="A step").title == "A step"


def test_every_rank_has_its_numbers_as_text():
    text = timeline([FAST, SLOW]).text
    assert (
        "rank 0: computes 1 ms, waits for another rank 7 ms, exchanges 2 ms; 2 all_reduce" in text
    )
    assert "rank 1: computes 8 ms, waits for another rank 0 s, exchanges 2 ms; 2 all_reduce" in text
    assert text.endswith("(measured)")


def test_same_traces_are_drawn_to_the_same_bytes():
    first, second = (timeline([FAST, SLOW]) for _ in range(2))
    assert first.png == second.png
    assert first.png.startswith(b"\x89PNG")


def test_other_traces_make_another_picture():
    assert timeline([FAST, SLOW]).png != timeline([FAST, FAST]).png


def test_a_real_step_is_drawn_with_all_its_collectives(pool: Callable[[int], RankPool], tiny: Path):
    model = pool(2).put(load_traced, tiny)
    traces = pool(2).run(trace_decode_step, model, [5, 6, 7])
    all_reduces = 2 * DecoderSpec.from_hf(tiny).num_layers + 1
    picture = timeline(traces)
    assert picture.title.startswith("A step over 2 ranks: ")
    assert picture.text.count(f"{all_reduces} all_reduce, 1 all_gather") == 2
    assert f"the shaded part: collectives 2 to 5 of {all_reduces + 1}" in picture.text


@pytest.mark.parametrize("events", [1, 2, 3, 5])
def test_short_traces_are_drawn_whole_or_in_part(events: int):
    trace = Trace(0, [event(float(number), 0.5) for number in range(events)])
    assert f"of {events}\n" in timeline([trace]).text
