"""Facts T6, T7, T8, T12, T15, T16 and F1, and what holds for every search."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.plan.candidates import Cause, Rejected
from labkit.plan.collective_presets import COLLECTIVE_PRESETS
from labkit.plan.device_presets import device
from labkit.plan.engine_options import EngineOptions
from labkit.plan.enough_gpus import enough_gpus
from labkit.plan.layout import Layout
from labkit.plan.layout_space import gpu_arithmetic, layout_title, layouts
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import resolve_model
from labkit.plan.placement_order import compare_orders
from labkit.plan.recorded_collectives import GRAPH
from labkit.plan.search import SLO, Objective, Question, QuestionError, compare, search
from labkit.plan.serving_point import BatchLimit, serving_points
from labkit.plan.step_system import Fidelity
from labkit.plan.topology import Topology

GB = 1e9
MIB = 2**20
H100 = device("h100")
QWEN = resolve_model("qwen2.5-72b")
TP8, TWO_TP4, TP4_PP2 = Layout(8), Layout(4, replicas=2), Layout(4, 2)
TWO_GPUS = Layout(2, replicas=4)
DENSE = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
SMALL = ModelSpec.from_hf(DENSE)
MOE = ModelSpec.from_hf(
    DENSE
    | {
        "model_type": "mixtral",
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "intermediate_size": 512,
    }
)
BARE = EngineOptions(activation_bytes=0, runtime_bytes=0)


def textbook(**more) -> Question:
    """Facts T6 to T8: 80 GB, 90 % of it usable, a ring over 450 GB/s and 2 us a hop."""
    gpu = replace(H100, memory_bytes=80 * GB, memory_bandwidth=3.35e12)
    return Question(
        QWEN,
        gpu,
        8,
        Objective.THROUGHPUT_PER_GPU,
        topology=Topology.for_device(gpu, 8, link="textbook-nvlink"),
        options=BARE,
        fidelity=Fidelity.TEXTBOOK,
        **more,
    )


def small(model=SMALL, gpus=8, objective=Objective.THROUGHPUT_PER_GPU, *, memory=1 * GB, **more):
    """A question on GPUs so small that a small model is a tight fit."""
    more = {"prompt_tokens": 64, "output_tokens": 32, "options": BARE} | more
    return Question(model, replace(H100, memory_bytes=memory), gpus, objective, **more)


@pytest.mark.parametrize(("batch", "longer"), [(1, 0.29), (64, 0.26)])
def test_t6_replicas_make_more_tokens_and_a_token_takes_longer(batch, longer):
    answer = compare(textbook(batch=batch), [TP8, TWO_TP4])
    one, two = answer.find(TP8), answer.find(TWO_TP4)
    assert answer.best is two
    assert two.tpot / one.tpot - 1 == pytest.approx(longer, abs=0.005)
    if batch == 64:
        assert two.tokens_per_second / one.tokens_per_second - 1 == pytest.approx(0.58, abs=0.005)
        assert two.memory.replica_kv_tokens < two.kv_tokens < one.kv_tokens
        assert any(reason.startswith("Two smaller KV pools") for reason in two.reasons_against)


@pytest.mark.parametrize(
    ("limit", "winner", "served"), [(13e-3, TWO_TP4, {TWO_TP4, TP8, TP4_PP2}), (10e-3, TP8, {TP8})]
)
def test_t7_the_slo_decides_between_replicas_and_one_group(limit, winner, served):
    answer = search(textbook(batch=1, slo=SLO(tpot=limit)))
    assert answer.best is not None
    assert answer.best.layout == winner
    assert {each.layout for each in answer.ranked} >= served
    for lost in {TWO_TP4, TP8, TP4_PP2} - served:
        rejected = answer.find(lost)
        assert rejected.cause is Cause.SLO_MISSED
        assert "above the limit of 10 ms" in rejected.reasons[0]
        assert rejected.best.tpot > limit


def test_t8_tp2_is_rejected_with_the_bytes_it_lacks():
    (rejected,) = compare(textbook(batch=1), [TWO_GPUS]).rejected
    assert rejected.cause is Cause.TOO_LARGE
    assert "67.7 GiB, are more than the 67.1 GiB that are usable" in rejected.reasons[0]
    assert "by 0.7 GiB" in rejected.reasons[0]


def test_t12_replicas_times_gpus():
    layout = Layout(2, replicas=40)
    assert gpu_arithmetic(layout) == "40 replicas x 2 GPUs = 80 GPUs"
    model = resolve_model("llama-3.1-70b")
    question = Question(model, device("h200"), 80, Objective.KV_CAPACITY)
    (found,) = compare(question, [layout]).ranked
    assert (found.gpus, found.idle_gpus) == (80, 0)
    assert found.kv_tokens == 40 * found.memory.kv_tokens


def test_t15_tp_across_nodes_sends_every_all_reduce_over_the_network():
    wide = ModelSpec.from_hf(DENSE | {"hidden_size": 4096, "num_hidden_layers": 80})
    recorded = COLLECTIVE_PRESETS[GRAPH]
    question = small(wide, 16, batch=32, memory=80 * GB, collectives=recorded)
    orders = compare_orders(question, Layout(8, 2), 32)
    assert orders.pp_inside.network_bytes == 40 * MIB
    assert orders.tp_inside.network_bytes == 32 * 4096 * 2
    assert orders.pp_inside.decode.seconds > orders.tp_inside.decode.seconds
    (found,) = compare(question, [Layout(8, 2)]).ranked
    assert any("swapped it would be 40 MiB" in reason for reason in found.reasons_for)
    assert compare_orders(question, Layout(4, 2), 32) is None


def test_t15_a_moe_of_400b_on_units_of_8_gpus():
    model = resolve_model("deepseek-v3")
    question = Question(model, device("h200"), 128, Objective.THROUGHPUT_PER_GPU, slo=SLO(tpot=0.1))
    unit = Layout(8, 2, 4, 32, 2)
    (found,) = compare(question, [unit]).ranked
    assert found.title == "2 replicas x TP 8 x PP 2 x DP 4 x EP 32"
    (inside, swapped) = (
        each.decode.seconds
        for orders in [compare_orders(question, unit, found.batch)]
        for each in (orders.tp_inside, orders.pp_inside)
    )
    assert inside < swapped


def test_t16_the_price_of_a_token_falls_with_the_batch_until_the_slo_stops_it():
    question = small(slo=SLO(tpot=1e-3), price_per_gpu_hour=2.0, memory=8 * GB)
    question = replace(question, objective=Objective.COST)
    layout = Layout(2, replicas=4)
    (largest,) = compare(question, [layout]).ranked
    assert largest.limited_by is BatchLimit.SLO
    batches = (1, largest.batch // 2, largest.batch)
    found = [compare(replace(question, batch=batch), [layout]).best for batch in batches]
    prices = [each.cost_per_million for each in found]
    waits = [each.tpot for each in found]
    assert prices == sorted(prices, reverse=True)
    assert waits == sorted(waits)
    assert prices[-1] == largest.cost_per_million
    (missed,) = compare(replace(question, batch=largest.batch + 1), [layout]).rejected
    assert missed.cause is Cause.SLO_MISSED


def test_f1_replicas_come_first_and_the_answer_says_which_links_groups_lie_on():
    answer = search(small(gpus=16, slo=SLO(tpot=0.1)))
    assert answer.best.layout == Layout(replicas=16)
    assert answer.split.endswith("replicas first.")
    assert "TP groups lie inside a node" in answer.notes[0]
    crossing = answer.find(Layout(8, 2)) or answer.find(Layout(16))
    assert crossing is not None


def test_cost_is_the_price_of_all_gpus_over_output_tokens():
    question = small(batch=4, price_per_gpu_hour=3.6, objective=Objective.THROUGHPUT_PER_GPU)
    (found,) = compare(question, [Layout(4, replicas=2)]).ranked
    assert found.cost_per_million == pytest.approx(8 * 3.6 / 3600 / found.tokens_per_second * 1e6)
    assert found.tokens_per_second_per_gpu == found.tokens_per_second / 8


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpus": 0}, "gpus is 0"),
        ({"gpus": 513}, "a search covers 1 to 512"),
        ({"prompt_tokens": 4090}, "beyond the model's context of 4096"),
        ({}, "nothing limits the batch here: give an SLO"),
        ({"objective": Objective.COST, "batch": 1}, "cost needs price_per_gpu_hour"),
        ({"objective": Objective.COST, "price_per_gpu_hour": 2.0}, "give an SLO"),
        ({"objective": "latency"}, "choose one of latency, throughput"),
        ({"price_per_gpu_hour": float("nan"), "batch": 1}, "price_per_gpu_hour is nan"),
        ({"batch": 0}, "batch is 0"),
        ({"slo": SLO(tpot=1.0), "allow_disaggregation": True}, "by a TTFT and a TPOT"),
        (
            {"slo": SLO(1.0, 1.0), "allow_disaggregation": True, "gpus": 1},
            "need 2 GPUs at least",
        ),
        ({"slo": SLO(ttft=1.0), "fidelity": Fidelity.TEXTBOOK}, "has no prefill, so no TTFT"),
    ],
)
def test_a_question_without_an_answer_is_refused_in_a_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        small(**changes)


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf"), True])
def test_a_limit_that_is_none_is_refused_by_name(limit):
    with pytest.raises(ValueError, match="tpot is"):
        SLO(tpot=limit)


def test_what_is_named_must_fit_the_gpus():
    question = small(gpus=4, batch=1)
    with pytest.raises(QuestionError, match="1 replica x 8 GPUs = 8 GPUs, more than the 4"):
        compare(question, [TP8])
    with pytest.raises(QuestionError, match="give at least one"):
        compare(question, [])


def test_illegal_layouts_have_every_reason_and_what_would_fix_it():
    odd = ModelSpec.from_hf(DENSE | {"num_key_value_heads": 2, "intermediate_size": 1022})
    (rejected,) = compare(small(odd, batch=1), [Layout(4)]).rejected
    assert rejected.cause is Cause.ILLEGAL
    assert any("1022" in reason and ";" in reason for reason in rejected.reasons)


def test_a_batch_without_room_is_rejected_with_the_tokens_there_are():
    question = small(batch=10**6, memory=0.2 * GB)
    rejected = compare(question, [Layout()]).rejected[0]
    assert rejected.cause is Cause.NO_ROOM
    assert "1000000 requests of 96 tokens" in rejected.reasons[0]


@pytest.mark.parametrize("gpus", [1, 2, 6, 8, 12, 64])
@pytest.mark.parametrize("model", [SMALL, MOE])
def test_every_layout_is_tried_once_and_uses_the_gpus_it_can(model, gpus):
    every = list(layouts(model, gpus, 8))
    assert len(every) == len(set(every))
    for layout in every:
        assert gpus - layout.replica_size < layout.world_size <= gpus
        assert layout.pp <= model.num_layers
    whole = {layout for layout in every if layout.world_size == gpus}
    plain = {Layout(tp, replicas=gpus // tp) for tp in range(1, gpus + 1) if gpus % tp == 0}
    assert plain <= whole
    assert all(layout.dp == layout.ep == 1 for layout in every) is not model.is_moe or gpus == 1


def test_a_layout_in_words():
    assert layout_title(Layout()) == "TP 1"
    assert layout_title(Layout(4, 2, 2, 8, 3)) == "3 replicas x TP 4 x PP 2 x DP 2 x EP 8"


@settings(max_examples=25, deadline=None)
@given(
    memory=st.floats(0.02, 2.0),
    gpus=st.sampled_from([1, 2, 4, 8, 16]),
    model=st.sampled_from([SMALL, MOE]),
    tpot=st.floats(1e-4, 5e-3),
)
def test_what_serves_fits_memory_and_keeps_the_slo_and_one_more_would_not(
    memory, gpus, model, tpot
):
    answer = search(small(model, gpus, memory=memory * GB, slo=SLO(tpot=tpot)))
    for found in answer.ranked:
        assert found.memory.fits
        assert found.tpot <= tpot
        sequences = found.batch // found.layout.dp
        for stage in found.memory.stages:
            assert stage.taken_bytes + sequences * stage.sequence_bytes(96) <= stage.usable_bytes
    for found in answer.ranked[:3]:
        sequences = found.batch // found.layout.dp
        if found.limited_by is BatchLimit.SLO:
            more = serving_points(answer.question, found.layout)(sequences + 1)
            assert more.tpot > tpot
        else:
            assert sequences + 1 > found.memory.max_concurrency(96)
    tried = len(list(layouts(model, gpus, 8)))
    assert len(answer.ranked) + len(answer.rejected) == tried
    assert all(each.reasons for each in answer.rejected)


@settings(max_examples=15, deadline=None)
@given(labels=st.permutations(range(16)), objective=st.sampled_from(list(Objective)))
def test_relabelling_gpus_with_their_links_changes_nothing(labels, objective):
    links = Topology.for_device(H100, 16)
    more = {"slo": SLO(tpot=1e-3), "price_per_gpu_hour": 1.0}
    before, after = (
        search(small(MOE, 16, objective, topology=topology, **more))
        for topology in (links, links.relabelled(labels))
    )
    assert [(each.layout, each.score) for each in before.ranked] == [
        (each.layout, each.score) for each in after.ranked
    ]
    assert [each.reasons for each in before.rejected] == [each.reasons for each in after.rejected]


@pytest.mark.parametrize("model", [SMALL, MOE])
def test_twice_the_gpus_never_answer_slower_nor_hold_less(model):
    for objective in (Objective.LATENCY, Objective.KV_CAPACITY):
        scores = [
            search(small(model, gpus, objective, memory=0.06 * GB)).best for gpus in (2, 4, 8, 16)
        ]
        values = [each.score for each in scores if each is not None]
        assert len(values) >= 3
        assert values == sorted(values, reverse=True)


def test_no_layout_serves_says_which_came_nearest():
    answer = search(small(slo=SLO(tpot=1e-9)))
    assert answer.best is None
    assert isinstance(answer.nearest, Rejected)
    fastest = min(each.best.tpot for each in answer.rejected if each.best)
    assert answer.nearest.best.tpot == fastest
    assert answer.split.endswith("none serves.")


def test_no_layout_fits_says_which_lacks_least_and_how_many_gpus_hold_it():
    question = Question(resolve_model("deepseek-v3"), H100, 8, Objective.LATENCY)
    answer = search(question)
    assert answer.best is None
    least = min(each.missing_bytes for each in answer.rejected if each.cause is Cause.TOO_LARGE)
    assert answer.nearest.missing_bytes == least > 0
    gpus, fitting = enough_gpus(question)
    assert (gpus, fitting.memory.fits, fitting.memory.missing_bytes) == (16, True, 0)
    assert fitting.layout.world_size == 16
    assert fitting.layout.tp <= 8
    assert search(replace(question, gpus=16)).best is not None
    tiny = replace(question, device=replace(H100, memory_bytes=2e9))
    assert enough_gpus(tiny) is None


def test_no_layout_has_room_says_which_has_most_and_how_many_gpus_have_it():
    question = Question(
        resolve_model("qwen2.5-72b"), H100, 4, Objective.LATENCY, prompt_tokens=8000, batch=200
    )
    answer = search(question)
    assert answer.best is None
    assert answer.nearest.cause is Cause.NO_ROOM
    assert answer.nearest.layout == Layout(tp=4)
    gpus, fitting = enough_gpus(question)
    assert gpus > 4
    assert fitting.layout.dp * fitting.room(question.length) >= 200
    assert search(replace(question, gpus=gpus)).best is not None
    assert search(replace(question, gpus=gpus // 2)).best is None


def test_gpus_that_a_replica_leaves_over_count_as_idle():
    answer = search(small(gpus=6, batch=1))
    found = answer.find(Layout(4))
    assert found.idle_gpus == 2
    assert any(reason.startswith("2 GPUs of 6 would idle") for reason in found.reasons_against)
    assert found.tokens_per_second_per_gpu == found.tokens_per_second / 6


def test_where_no_layer_keeps_every_token_capacity_is_counted_in_whole_requests():
    windows = resolve_model("starcoder2-3b")
    question = Question(windows, device("t4"), 4, Objective.KV_CAPACITY)
    answer = search(question)
    assert answer.best.memory.kv_tokens == 0
    assert answer.best.kv_tokens > 0
    assert answer.best.kv_tokens % question.length == 0
