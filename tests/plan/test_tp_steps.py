"""Facts T1 to T4 and T14: the step under tensor parallelism, and what recorded links make of it."""

import pytest

from labkit.plan.collective_presets import COLLECTIVE_PRESETS, TEXTBOOK_NVLINK, TEXTBOOK_PCIE
from labkit.plan.presets import PRESETS
from labkit.plan.recorded_collectives import EAGER, GRAPH
from labkit.plan.tp_steps import compare_links, tp_step

QWEN = PRESETS["qwen2.5-72b"].spec
L40S = "l40s/vllm_graph/0.22.0/all_reduce"


def milliseconds(spec, batch, preset, **more):
    (link,) = compare_links(spec, batch, [preset], **more)
    return [1e3 * step.seconds for step in link.steps]


def test_t1_weights_at_tp_2_4_8():
    steps = [tp_step(QWEN, tp, 1, TEXTBOOK_NVLINK.model) for tp in (2, 4, 8)]
    assert [1e3 * s.weight_seconds for s in steps] == pytest.approx([21.7, 10.9, 5.4], abs=0.05)


def test_t2_collectives_on_textbook_nvlink():
    steps = [tp_step(QWEN, tp, 1, TEXTBOOK_NVLINK.model) for tp in (2, 4, 8)]
    assert [1e3 * s.collective_seconds for s in steps] == pytest.approx([0.65, 1.9, 4.5], rel=0.02)


def test_t3_steps_on_textbook_nvlink():
    assert milliseconds(QWEN, 1, TEXTBOOK_NVLINK) == pytest.approx([22.4, 12.8, 9.9], abs=0.06)


def test_t4_on_textbook_pcie_tp8_is_no_faster_than_tp4():
    for batch, expected in ((1, 11.4), (64, 22.9)):
        (link,) = compare_links(QWEN, batch, [TEXTBOOK_PCIE])
        assert 1e3 * link.steps[-1].collective_seconds == pytest.approx(expected, abs=0.05)
        assert link.last_gain < 1
        assert link.fastest.tp == 4


def test_t14_a_7b_on_pcie_is_slower_over_8_gpus_than_on_one():
    spec = PRESETS["llama-2-7b"].spec
    one, eight = (tp_step(spec, tp, 1, TEXTBOOK_PCIE.model, parameters=7e9) for tp in (1, 8))
    assert 1e3 * one.seconds == pytest.approx(4.2, abs=0.05)
    assert one.collective_seconds == 0
    assert 1e3 * eight.seconds == pytest.approx(5.0, abs=0.05)
    assert eight.latency_seconds > 50 * eight.transfer_seconds


def test_recorded_nvlink_makes_tp8_better_than_the_textbook_says():
    textbook, graph, eager = compare_links(
        QWEN, 1, [TEXTBOOK_NVLINK, COLLECTIVE_PRESETS[GRAPH], COLLECTIVE_PRESETS[EAGER]]
    )
    assert 1e3 * graph.steps[-1].seconds == pytest.approx(6.2, abs=0.1)
    assert textbook.last_gain < eager.last_gain < graph.last_gain < 2
    assert graph.steps[-1].seconds < eager.steps[-1].seconds < textbook.steps[-1].seconds


def test_recorded_pcie_at_batch_64_makes_tp8_far_worse_than_the_textbook_says():
    textbook, recorded = compare_links(QWEN, 64, [TEXTBOOK_PCIE, COLLECTIVE_PRESETS[L40S]])
    assert recorded.steps[-1].collective_seconds > 5 * textbook.steps[-1].collective_seconds
    assert (textbook.fastest.tp, recorded.fastest.tp) == (4, 2)


def test_a_payload_beyond_what_was_recorded_is_told():
    inside, beyond = (
        compare_links(QWEN, batch, [COLLECTIVE_PRESETS[GRAPH], TEXTBOOK_NVLINK])
        for batch in (64, 4096)
    )
    assert [link.is_extrapolated for link in inside] == [False, False]
    assert [link.is_extrapolated for link in beyond] == [True, False]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tp_step(QWEN, 0, 1, TEXTBOOK_PCIE.model), "tp is 0"),
        (lambda: tp_step(QWEN, 2, 0, TEXTBOOK_PCIE.model), "batch is 0"),
        (lambda: compare_links(QWEN, 1, [TEXTBOOK_PCIE], degrees=[8]), "give at least two"),
        (
            lambda: compare_links(QWEN, 1, [COLLECTIVE_PRESETS["l40s/nccl/2.27.3/alltoall"]]),
            "prices alltoall; a decode step needs an all_reduce",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()
