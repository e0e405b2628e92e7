"""The planning exercises expect what the planner itself computes."""

from dataclasses import replace

import pytest

from course.exercises import load
from labkit.plan.collectives import Ring
from labkit.plan.device_presets import DEVICES
from labkit.plan.engine_options import EngineOptions
from labkit.plan.layout import Layout
from labkit.plan.legality import check
from labkit.plan.memory import plan_memory
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS
from labkit.plan.presets import PRESETS
from labkit.plan.tp_steps import tp_step

DENSE = {"model_type": "llama", "vocab_size": 32000, "max_position_embeddings": 4096}


def expected(name: str, case_name: str):
    [case] = [case for case in load(name).visible(0) if case.name == case_name]
    return case.arguments(0), case.expected(0)


@pytest.mark.parametrize(
    ("case", "model"),
    [
        ("the 72B of the lesson", "qwen2.5-72b"),
        ("a head size of its own", "qwen3-32b"),
        ("a latent", "deepseek-v3"),
    ],
)
def test_a_tokens_cache_is_that_of_the_model(case: str, model: str):
    assert expected("kv_bytes_per_token", case)[1] == MODELS[model].model.kv_bytes_per_token(2)


def test_the_pools_tokens_are_those_of_the_memory_plan():
    given, tokens = expected("kv_capacity", "the 72B over 4")
    device = replace(DEVICES["h100"], memory_bytes=given["memory_bytes"])
    options = EngineOptions(activation_bytes=0, runtime_bytes=given["overhead_bytes"])
    model = MODELS["qwen2.5-72b"].model
    assert tokens == pytest.approx(
        plan_memory(model, device, Layout(tp=given["tp"]), options).kv_tokens, rel=0.002
    )


def test_rules_are_those_of_the_planner():
    names = {"heads": "heads", "kv_heads": "KV heads", "mlp": "columns"}
    for case in (*load("legal_tp_degrees").visible(0), *load("legal_tp_degrees").hidden(0)):
        config = dict(case.arguments(0)["config"])
        if "group_size" in config:
            continue
        hidden = config["num_attention_heads"] * config["head_dim"]
        model = ModelSpec.from_hf(DENSE | {"num_hidden_layers": 2, "hidden_size": hidden} | config)
        for tp, rules in case.expected(0).items():
            told = {reason.rule for reason in check(model, Layout(tp=tp)).reasons}
            assert {names[rule] for rule in rules} == told, (case.name, tp)


def test_a_steps_terms_are_those_of_the_planner():
    given, terms = expected("decode_step_terms", "TP 4, 12 sequences")
    ring = Ring(given["hop_latency"], given["bandwidth"])
    step = tp_step(PRESETS["qwen2.5-72b"].spec, 4, 12, ring, parameters=given["parameters"])
    assert terms["weights"] == pytest.approx(step.weight_seconds)
    assert terms["latency"] == pytest.approx(step.latency_seconds)
    assert terms["transfer"] == pytest.approx(step.transfer_seconds)
