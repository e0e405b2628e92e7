"""Reasons for and against layouts follow from their figures; so does why one lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.device_presets import device
from labkit.plan.layout import Layout
from labkit.plan.model_presets import resolve_model
from labkit.plan.quantity_text import bytes_text, duration, percent, times
from labkit.plan.reasons import kv_head_copies, share
from labkit.plan.search import SLO, Objective, Question, compare
from labkit.plan.step_system import Efficiency
from labkit.plan.why_lost import why_lost

H100, H200 = device("h100"), device("h200")
QWEN = resolve_model("qwen2.5-72b")
DEEPSEEK = resolve_model("deepseek-v3")


def dense(gpus=8, objective=Objective.THROUGHPUT_PER_GPU, **more):
    return Question(QWEN, H100, gpus, objective, **({"batch": 8} | more))


def sparse(gpus=32, **more):
    return Question(DEEPSEEK, H200, gpus, Objective.THROUGHPUT_PER_GPU, **({"batch": 64} | more))


def only(question, layout):
    (found,) = compare(question, [layout]).ranked
    return found


def said(sentences, *words):
    """The one sentence that has all the words."""
    (sentence,) = (each for each in sentences if all(word in each for word in words))
    return sentence


def test_the_share_of_all_reduces_is_the_steps():
    found = only(dense(), Layout(8))
    terms = found.decode.terms
    part = sum(terms[name] for name in terms if "all-reduce" in name or "gather" in name)
    sentence = said(found.reasons_against, "All-reduces take")
    assert f"take {percent(part / found.decode.seconds)} of the step" in sentence
    assert duration(terms["all-reduce latency"]) in sentence
    assert not any("All-reduces" in each for each in only(dense(), Layout(2, 4)).reasons_against)


@pytest.mark.parametrize(("tp", "copies"), [(1, 1), (8, 1), (16, 2), (32, 4)])
def test_kv_heads_are_held_more_than_once_beyond_their_number(tp, copies):
    assert kv_head_copies(QWEN, tp) == copies
    assert kv_head_copies(DEEPSEEK, tp) == 1
    found = only(dense(64), Layout(tp) if tp > 2 else Layout(tp, 4))
    sentences = [each for each in found.reasons_against if "KV heads are held" in each]
    assert [f"held {times(copies)}" in each for each in sentences] == [True] * (copies > 1)


def test_tp_across_nodes_names_the_bytes_and_the_network():
    found = only(dense(16), Layout(16))
    payload = 8 * 8192 * 2 * 2 * 80
    sentence = said(found.reasons_against, "TP 16 crosses nodes")
    assert bytes_text(payload) in sentence
    assert "InfiniBand" in sentence
    assert not any("crosses nodes" in each for each in only(dense(16), Layout(8)).reasons_against)
    said(only(dense(16), Layout(8)).reasons_for, "TP 8 stays inside a node")


def test_a_pipeline_does_not_lower_latency_and_idles_with_one_sequence():
    found = only(dense(batch=1), Layout(4, 2))
    said(found.reasons_against, "does not lower one request's latency", "all 2 stages")
    said(found.reasons_against, "Stages idle 50 %")
    assert not any("Stages idle" in each for each in only(dense(), Layout(4, 2)).reasons_against)


def test_layers_that_do_not_divide_over_stages_cap_what_stages_do():
    found = only(sparse(64), Layout(8, 8))
    said(found.reasons_against, "61 layers on 8 stages", "95 %")


def test_replicas_have_smaller_pools_and_more_copies_of_the_weights():
    found = only(dense(), Layout(4, replicas=2))
    said(found.reasons_for, "2 replicas send nothing")
    sentence = said(found.reasons_against, "Two smaller KV pools", "weights are held twice")
    assert f"{found.memory.kv_tokens:,} tokens" in sentence


def test_the_latent_cache_is_copied_by_tp_and_not_by_dp():
    said(only(sparse(), Layout(8)).reasons_against, "latent cache is held 8 times")
    found = only(sparse(), Layout(1, 1, 32, 32))
    said(found.reasons_for, "no latent is held twice")
    assert not any("latent" in each for each in found.reasons_against)


def test_experts_say_how_many_are_held_touched_and_how_even_they_are_taken_to_be():
    skewed = replace(sparse(), efficiency=Efficiency(balancedness=0.7))
    found = only(skewed, Layout(1, 1, 32, 32))
    said(found.reasons_for, "keeps 8 experts of a layer's 256.")
    said(found.reasons_against, "balancedness of 0.7 is assumed")
    said(found.reasons_against, "A batch of 64 touches 87 %")
    said(only(sparse(batch=512), Layout(1, 1, 32, 32)).reasons_against, "touches 100 %")


@pytest.mark.parametrize(
    ("limit", "words"), [(0.02, "The SLO stops the batch at"), (10.0, "The KV cache stops")]
)
def test_what_stops_the_batch_is_said_with_both_bounds(limit, words):
    found = only(dense(batch=None, slo=SLO(tpot=limit)), Layout(8))
    sentence = said(found.reasons_against, words)
    assert str(found.batch) in sentence
    if limit < 1:
        assert str(int(found.memory.max_concurrency(1280))) in sentence
    else:
        said(found.reasons_for, "keeps TPOT at most 10 s with every batch")


def test_prefills_and_overheads_are_named_where_they_are_a_tenth_of_the_time():
    busy = only(dense(prompt_tokens=8192, output_tokens=64, batch=16), Layout(8))
    said(busy.reasons_against, f"take {percent(busy.point.prefill_share / busy.tpot)} of the time")
    slow = dense(efficiency=Efficiency(step_overhead=6e-3))
    found = only(slow, Layout(8))
    part = share(found.decode, "step overhead")
    said(found.reasons_against, f"do not shorten take {percent(part)}")


def test_every_candidate_has_a_reason_on_each_side():
    answer = compare(dense(batch=4), [Layout(8), Layout(4, replicas=2), Layout(4, 2), Layout(2, 4)])
    for found in answer.ranked:
        assert found.reasons_for
        assert found.reasons_against
        for sentence in (*found.reasons_for, *found.reasons_against):
            assert sentence[0].isupper() or sentence[0].isdigit()
            assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (Objective.THROUGHPUT_PER_GPU, "fewer tokens per second for each GPU than"),
        (Objective.LATENCY, "longer requests than"),
        (Objective.KV_CAPACITY, "fewer KV tokens than"),
    ],
)
def test_why_a_layout_lost_names_the_terms_that_differ_most(objective, words):
    answer = compare(dense(objective=objective), [Layout(8), Layout(4, replicas=2), Layout(4, 2)])
    best, *others = answer.ranked
    assert why_lost(best, best) == f"{best.title} is the best."
    for other in others:
        sentence = why_lost(best, other)
        assert sentence.startswith(f"{other.title} has ")
        assert f"{words} {best.title}" in sentence
        moved = {
            name: abs(other.decode.terms[name] - best.decode.terms[name])
            for name in best.decode.terms
        }
        assert max(moved, key=moved.__getitem__) in sentence


@given(st.floats(1e-9, 1e6))
def test_quantities_keep_three_digits(value):
    number, unit = duration(value).split()
    scale = {"s": 1.0, "ms": 1e-3, "us": 1e-6}[unit]
    assert float(number.replace(",", "")) * scale == pytest.approx(value, rel=0.006)


def test_bytes_shares_and_counts_in_words():
    assert [bytes_text(size) for size in (12, 1536, 40 * 2**20, 135.4 * 2**30)] == [
        "12 bytes",
        "1.5 KiB",
        "40 MiB",
        "135 GiB",
    ]
    assert [percent(part) for part in (0.058, 0.46, 1.0)] == ["5.8 %", "46 %", "100 %"]
    assert [times(count) for count in (1, 2, 5)] == ["once", "twice", "5 times"]
