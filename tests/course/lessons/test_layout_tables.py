"""The tables of lesson 03 say what the planner computes, and what the course must reproduce."""

import pytest

from course.lessons import layout_planning_figures as figures
from course.lessons.layout_example_tables import LAYOUTS, batches_table, users_table
from course.lessons.layout_legality_tables import legality_table
from course.lessons.layout_memory_tables import fits_table, memory_picture, plans, reason_of
from course.lessons.layout_model_tables import cache_picture, cache_table, kept, weights_table
from course.lessons.layout_pipeline_tables import (
    balance_table,
    bubble_table,
    coverage_table,
    orders_of,
    orders_table,
    units_table,
)
from course.lessons.layout_search_tables import limits_table, pareto_picture, verdicts_table
from course.lessons.layout_serving_tables import (
    cells_table,
    few_clients,
    gap_table,
    line_over_tp,
    predict_with,
    same_users_table,
)
from course.lessons.layout_step_tables import (
    degrees_table,
    groups_of,
    regimes_table,
    steps_picture,
    terms_table,
)
from labkit.plan.collective_presets import COLLECTIVE_PRESETS
from labkit.plan.device_presets import device
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS
from labkit.plan.recorded_collectives import GRAPH
from labkit.plan.recorded_serving import ROWS
from labkit.plan.search import SLO, Objective, Question, compare, search
from labkit.plan.serving_capacity import kv_capacity
from labkit.plan.serving_presets import vllm_h100
from labkit.plan.steptime import Fidelity, System, decode_step
from labkit.plan.topology import Topology

QWEN = MODELS["qwen2.5-72b"].model
GPU, H100 = device("textbook-80gb"), device("h100")
FAST = System(GPU, Topology.for_device(GPU, 8), fidelity=Fidelity.TEXTBOOK)
SLOW = System(GPU, Topology.for_device(GPU, 8, link="textbook-pcie"), fidelity=Fidelity.TEXTBOOK)


def test_t1_t2_t3_terms_of_the_textbook_step():
    rows = degrees_table(QWEN, FAST, (2, 4, 8), [1]).rows
    assert [row[2] for row in rows] == ["21.7 ms", "10.9 ms", "5.43 ms"]
    assert [row[5] for row in rows] == ["646 us", "1.93 ms", "4.49 ms"]
    assert [row[6] for row in rows] == ["22.3 ms", "12.8 ms", "9.92 ms"]


def test_t4_over_pcie_tp_8_is_no_faster_than_tp_4():
    rows = degrees_table(QWEN, SLOW, (4, 8), (1, 64)).rows
    assert [row[5] for row in rows if row[1] == 8] == ["11.4 ms", "22.9 ms"]
    assert [row[6] for row in rows] == ["15.8 ms", "16.8 ms", "25.7 ms", "28.4 ms"]


def test_t14_a_7b_chat_model_is_slower_on_eight_gpus_of_a_slow_link():
    chat = MODELS["llama-2-7b"].model
    rows = degrees_table(chat, SLOW, (1, 8), [1], parameters=7e9).rows
    assert [row[6] for row in rows] == ["4.18 ms", "5.04 ms"]


def test_t13_the_three_outcomes_are_all_there():
    rows = regimes_table({"72B": (8192, 80), "7B": (4096, 32)}, 8, 1).rows
    assert {row[-1] for row in rows} == {
        "the split helps",
        "the link is slow, but the split still wins",
        "the split hurts",
    }


def test_t5_bytes_of_a_token():
    [row] = cache_table(["qwen2.5-72b"], [1024]).rows
    assert row[2:] == ("320 KiB", "320 MiB")


def test_t6_replicas_against_one_group_at_the_same_batch_and_with_the_same_users():
    _group, replicas, stages = batches_table(QWEN, FAST, 64).rows
    assert replicas[1:] == ("12.8 ms (+29%)", "13.3 ms (+26%)", 128, "9,602 (+58%)")
    assert stages[1:3] == replicas[1:3]
    rows = users_table(QWEN, FAST, [128]).rows
    assert [row[4] for row in rows] == ["11,418", "9,602", "9,599"]
    assert pytest.approx(0.584, abs=1e-3) == figures.MORE_TOKENS
    assert pytest.approx(9602 / 11418 - 1, abs=1e-4) == figures.LESS_TOKENS


def test_t7_two_limits_have_two_answers_and_a_free_batch_a_third():
    def asked(limit: float, batch: int | None) -> Question:
        return Question(
            QWEN, GPU, 8, Objective.THROUGHPUT_PER_GPU, slo=SLO(tpot=limit), batch=batch,
            fidelity=Fidelity.TEXTBOOK,
        )  # fmt: skip

    named = [LAYOUTS["TP 8"], LAYOUTS["2 x TP 4"]]
    answers = {
        name: compare(asked(limit, batch), named)
        for name, limit, batch in [("13", 13e-3, 1), ("10", 10e-3, 1), ("free", 13e-3, None)]
    }
    best = {name: answer.best.title for name, answer in answers.items() if answer.best}
    assert best == {"13": "2 replicas x TP 4", "10": "TP 8", "free": "TP 8"}
    rows = verdicts_table(answers).rows
    assert [row[5] for row in rows if row[0] == "10"][1].startswith("TPOT 12.8 ms is above")
    assert [row[2] for row in rows if row[0] == "free"] == [303, 26]
    assert figures.LOOSE_BATCH == {8: 303, 4: 26}


def test_t8_tp_2_is_rejected_for_its_weights_alone():
    layouts = {f"TP {tp}": Layout(tp=tp) for tp in (2, 4, 8)}
    found = plans(QWEN, GPU, layouts)
    rows = fits_table(found, layouts).rows
    assert [row[-1] for row in rows] == ["does not fit", "fits", "fits"]
    assert "67.7 GiB, are more than the 67.1 GiB" in " ".join(reason_of(found["TP 2"]).split())


def test_a_bar_of_memory_is_all_that_may_be_used():
    picture = memory_picture("Bars", plans(QWEN, GPU, {"TP 4 x PP 2": Layout(tp=4, pp=2)}))
    assert picture.text.count("(67.06 GiB) =") == 2
    assert "stage 1" in picture.text


def test_q1_groups_are_refused_with_their_padding_and_legal_where_they_divide():
    rule = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    layout = [Layout(tp=8)]
    [wide] = legality_table(ModelSpec.from_hf(MODELS["qwen2.5-72b"].config | rule), layout).rows
    assert "3696" in str(wide[1])
    assert "pad the MLP to 29696" in str(wide[2])
    assert figures.PADDED_MLP == 29_696
    [narrow] = legality_table(ModelSpec.from_hf(MODELS["llama-3.1-8b"].config | rule), layout).rows
    assert narrow[1] == "legal"


def test_p1_bubbles_and_e1_coverage_as_quoted():
    assert [row[2] for row in bubble_table([(4, 4), (4, 16)]).rows] == ["43%", "16%"]
    routings = [(8, 2, 16), (64, 6, 32), (256, 8, 64), (256, 8, 256)]
    shares = [float(str(row[3]).rstrip("%")) for row in coverage_table(routings).rows]
    assert shares == pytest.approx([99.0, 95.7, 86.9, 99.97], abs=0.05)


def test_e6_units_have_their_gpus_and_expert_slots():
    units = {"prefill": Layout(tp=4, dp=8, ep=32), "decode": Layout(tp=4, dp=80, ep=320)}
    rows = units_table(units, 256, {"prefill": 32, "decode": 64}).rows
    assert [row[3:] for row in rows] == [(32, "9"), (320, "1")]


def test_p4_stages_by_memory_spare_the_ends():
    number, memory, time = balance_table(QWEN, 4).rows
    assert memory[1] == "19, 21, 21, 19"
    assert time[1] == "20, 20, 21, 19"
    assert number[4] == "95.0%"


def test_t15_the_wrong_order_sends_all_reduces_over_the_network():
    quoted = ModelSpec.from_hf(MODELS["llama-3.1-8b"].config | {"num_hidden_layers": 80})
    found = orders_of(quoted, Layout(tp=8, pp=2), 32, H100, COLLECTIVE_PRESETS[GRAPH])
    inside, outside = orders_table({"80 layers": found}).rows
    assert (inside[2], outside[2]) == ("256 KiB", "40 MiB")
    with pytest.raises(ValueError, match="no second order"):
        orders_of(quoted, Layout(tp=8), 32, H100, COLLECTIVE_PRESETS[GRAPH])


def test_t16_a_looser_limit_buys_a_larger_batch_and_cheaper_tokens():
    fit = vllm_h100()
    asked = Question(
        QWEN, H100, 8, Objective.COST, slo=SLO(tpot=0.02), efficiency=fit.efficiency,
        collectives=COLLECTIVE_PRESETS[GRAPH], price_per_gpu_hour=2.5,
    )  # fmt: skip
    rows = limits_table(asked, (0.005, 0.015, 0.03)).rows
    assert rows[0][1] == "none meets it"
    assert int(str(rows[2][2])) > int(str(rows[1][2]))
    assert float(str(rows[2][6])) < float(str(rows[1][6]))
    picture = pareto_picture("Line", search(asked))
    assert picture.text.count("beaten by none") > 3


def test_the_roofline_misses_a_constant_that_no_degree_divides():
    model = MODELS["llama-3.1-70b-fp8"].model
    ideal = System(H100, Topology.for_device(H100, 8), COLLECTIVE_PRESETS[GRAPH])
    roofline = predict_with(model, ideal, kv_capacity(model, H100))
    calm = few_clients(ROWS)
    assert [row.tp for row in calm] == [2, 4, 8]
    assert all(str(row[-1]).startswith("-") for row in gap_table(calm, roofline).rows)
    divided, fixed = line_over_tp(calm)
    assert divided == pytest.approx(22.5e-3, rel=0.03)
    assert fixed == pytest.approx(6.2e-3, rel=0.03)


def test_the_fit_is_judged_on_rows_it_did_not_see():
    shares = [
        float(str(cell).rstrip("%"))
        for row in cells_table(ROWS, {"fitted": vllm_h100().predict}).rows
        for cell in row[2:]
        if cell
    ]
    assert max(shares) < 20
    assert shares[-1] < 10


def test_recorded_rows_are_compared_with_the_same_clients():
    rows = same_users_table(ROWS).rows
    assert rows[0] == ("1,024 + 1,024", 8, "9.36 ms", "11.8 ms", "+26%", "TP 8")
    assert {row[-1] for row in rows if row[0] == "8,192 + 1,024"} == {"TP 8", "2 x TP 4"}


def test_groups_of_terms_add_up_to_the_step():
    sheet = System(H100, Topology.for_device(H100, 8))
    step = decode_step(QWEN, sheet, Layout(tp=8), 64, 4096)
    assert sum(groups_of(step).values()) == pytest.approx(step.seconds)
    assert "KV cache" in steps_picture("One step", {"TP 8": step}).text
    assert terms_table({"TP 8": step}).rows[-1][0] == "the step"


def test_a_model_is_told_by_what_it_stores_and_keeps():
    rows = {str(row[0]): row for row in weights_table(["llama-3.1-70b-fp8", "deepseek-v3"]).rows}
    assert rows["DeepSeek-V3"][1:4] == ("671e9", "37.55e9", "fp8, bfloat16")
    assert kept(MODELS["gpt-oss-120b"].model) == "18 a window (128), 18 all tokens"
    assert "64 GiB" in cache_picture(["llama-2-7b", "deepseek-v3"], [1024, 131_072]).title
