"""Products run in narrow types only where the inputs are quantised as well as the weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from labkit.plan.config_fields import UnsupportedModelError
from labkit.plan.device_presets import device
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS
from labkit.plan.search import Objective, Question
from labkit.plan.search_notes import notes
from labkit.plan.step_work import stage_works
from labkit.plan.steptime import System, prefill_step
from labkit.plan.topology import Topology

LLAMA = {
    "model_type": "llama",
    "vocab_size": 1024,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "dtype": "bfloat16",
}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
FP8_IN = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}
INT8_IN = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True}
FP4_IN = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "dynamic": "local"}
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel"}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}
FP8 = {"num_bits": 8, "type": "float", "strategy": "tensor"}
BLOCKS = {**FP8, "strategy": "block", "block_structure": [128, 128]}
FP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}


def packed(weights: dict[str, Any], inputs: dict[str, Any] | None) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {
        "quant_method": "compressed-tensors",
        "ignore": ["lm_head"],
        "config_groups": {"group_0": group},
    }


WEIGHTS_ALONE = {
    "GPTQ in 8 bits": {"quant_method": "gptq", "bits": 8, "group_size": 128},
    "GPTQ in 4 bits": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    "AWQ": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
    "W8A16": packed(INT8, None),
    "W4A16": packed(INT4, None),
    "W8A16 in FP8": packed(FP8, None),
    "W8A16 in FP8, blocks": packed(BLOCKS, None),
    "NVFP4A16": packed(FP4, None),
    "modelopt W4A16_NVFP4": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
    "NF4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    "FP4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"},
    "BitNet": {"quant_method": "bitnet", "quantization_mode": "offline"},
}
WITH_INPUTS = {
    "FP8, dynamic": ({"quant_method": "fp8"}, "fp8"),
    "FP8, static": ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8"),
    "FP8, blocks": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
    "fbgemm": ({"quant_method": "fbgemm_fp8"}, "fp8"),
    "modelopt FP8": ({"quant_algo": "FP8"}, "fp8"),
    "modelopt FP8, channels": ({"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}, "fp8"),
    "modelopt FP8, blocks": ({"quant_algo": "FP8_PB_WO"}, "fp8"),
    "modelopt NVFP4": ({"quant_algo": "NVFP4", "group_size": 16}, "fp4"),
    "LLM.int8()": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
    "W8A8 in FP8": (packed(FP8, FP8_IN), "fp8"),
    "W8A8 in FP8, blocks": (packed(BLOCKS, FP8_IN), "fp8"),
    "W8A8 in INT8": (packed(INT8, INT8_IN), "int8"),
    "W4A8": (packed(INT4, INT8_IN), "int8"),
    "W4A8 in FP8": (packed(INT4, FP8_IN), "fp8"),
    "NVFP4": (packed(FP4, FP4_IN), "fp4"),
    "NVFP4 with FP8 inputs": (packed(FP4, FP8_IN), "fp8"),
    "FP8 with FP4 inputs": (packed(FP8, FP4_IN), "fp8"),
}


def model(quantization: object, config: dict[str, Any] = LLAMA) -> ModelSpec:
    return ModelSpec.from_hf({**config, "quantization_config": quantization})


def product_dtypes(spec: ModelSpec) -> set[str]:
    """Of all products but the LM head's and the router's."""
    (work,) = stage_works(spec, Layout())
    flops = max(work.flops, key=lambda each: each[1])
    return {flops[0], *(expert.dtype for expert in work.experts)}


def prefill_seconds(spec: ModelSpec, name: str) -> float:
    hardware = device(name)
    return prefill_step(
        spec, System(hardware, Topology.for_device(hardware, 1)), None, 8192
    ).seconds


@pytest.mark.parametrize("config", [LLAMA, MIXTRAL])
@pytest.mark.parametrize("scheme", WEIGHTS_ALONE)
def test_quantised_weights_alone_are_multiplied_in_the_models_dtype(scheme, config):
    assert product_dtypes(model(WEIGHTS_ALONE[scheme], config)) == {"bfloat16"}
    half = model(WEIGHTS_ALONE[scheme], {**config, "dtype": "float16"})
    assert product_dtypes(half) == {"float16"}


@pytest.mark.parametrize("config", [LLAMA, MIXTRAL])
@pytest.mark.parametrize("scheme", WITH_INPUTS)
def test_quantised_inputs_are_multiplied_in_the_wider_of_both_types(scheme, config):
    quantization, dtype = WITH_INPUTS[scheme]
    assert product_dtypes(model(quantization, config)) == {dtype}


@pytest.mark.parametrize("scheme", WEIGHTS_ALONE)
def test_a_long_prompt_takes_as_long_as_without_quantisation(scheme):
    """It is bound by products, which no bit of the weights makes faster."""
    assert prefill_seconds(model(WEIGHTS_ALONE[scheme]), "b200") == pytest.approx(
        prefill_seconds(model(None), "b200"), rel=0.01
    )


def test_a_long_prompt_is_shorter_where_inputs_are_narrow_too():
    plain, fp8, fp4 = (
        prefill_seconds(model(WITH_INPUTS[name][0] if name else None), "b200")
        for name in (None, "FP8, dynamic", "NVFP4")
    )
    assert fp4 < fp8 < plain


@pytest.mark.parametrize(
    ("name", "scheme"), [("a100", "FP8, blocks"), ("a100", "NVFP4"), ("h100", "NVFP4")]
)
def test_a_device_without_the_type_widens_the_weights_and_says_so(name, scheme):
    """FP8 on an A100 and NVFP4 on an H100 run as weights alone: 16-bit products, narrow reads."""
    quantization, dtype = WITH_INPUTS[scheme]
    spec, plain = model(quantization), model(None)
    assert prefill_seconds(spec, name) == pytest.approx(prefill_seconds(plain, name), rel=0.01)
    question = Question(spec, device(name), 1, Objective.LATENCY)
    assert any(
        f"does not compute in {dtype}: it computes in bfloat16" in n for n in notes(question)
    )


def test_quantised_weights_alone_leave_nothing_to_say_of_the_device():
    for scheme, quantization in WEIGHTS_ALONE.items():
        question = Question(model(quantization), device("a100"), 1, Objective.LATENCY)
        assert not any("does not compute" in note for note in notes(question)), scheme


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("llama-3.1-70b-fp8", "fp8"),
        ("deepseek-v3", "fp8"),
        ("kimi-k2", "fp8"),
        ("qwen3-235b-a22b-fp8", "fp8"),
        ("qwen3-32b-fp8", "fp8"),
        ("qwen2.5-72b-awq", "float16"),
        ("qwen2.5-72b-gptq-int4", "float16"),
        ("gpt-oss-120b", "bfloat16"),
    ],
)
def test_presets_run_in_what_their_checkpoints_say(name, dtype):
    assert product_dtypes(MODELS[name].model) == {dtype}


def stored_bits(inputs: dict[str, Any] | None, weights: dict[str, Any] = FP8) -> float:
    """Of one matrix, less what it has without anything said of its inputs."""
    with_inputs, without = (model(packed(weights, each)) for each in (inputs, None))
    a, b = (
        next(m for m in spec.layers[0].matrices if m.name.endswith("down_proj"))
        for spec in (with_inputs, without)
    )
    return 8 * (a.total_bytes - b.total_bytes)


@pytest.mark.parametrize(
    ("weights", "inputs", "bits"),
    [
        (FP4, FP4_IN, 32),
        (FP4, {**FP4_IN, "dynamic": False}, 32),
        (FP4, {**FP4_IN, "dynamic": True}, 0),
        (FP8, FP8_IN, 0),
        (FP8, {**FP8_IN, "strategy": "tensor", "dynamic": False}, 16),
        (FP8, {"num_bits": 8, "type": "float", "strategy": "tensor"}, 16),
        (FP8, {**FP8_IN, "dynamic": False, "scale_dtype": "torch.float32"}, 32),
        (INT8, {**INT8_IN, "dynamic": False, "symmetric": False}, 16 + 8),
    ],
)
def test_a_checkpoint_keeps_the_scale_of_inputs_that_are_not_all_dynamic(weights, inputs, bits):
    """compressed-tensors registers `input_global_scale` (float32) for FP4 inputs, `input_scale` in
    the weight's dtype for others, and neither where all scales are found while running."""
    assert stored_bits(inputs, weights) == bits


def test_each_expert_has_an_input_scale_of_its_own():
    spec, plain = (model(packed(FP4, inputs), MIXTRAL) for inputs in (FP4_IN, None))
    matrices = 4 * (4 + 8 * 3)  # 4 layers: attention, and 3 matrices for each of 8 experts
    assert spec.weight_bytes - plain.weight_bytes == 4 * matrices


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_bits": 3}, "num_bits"),
        ({"type": "complex"}, "type"),
        ({"dynamic": "global"}, "dynamic"),
        ({"dynamic": False, "scale_dtype": "int3"}, "scale_dtype"),
    ],
)
def test_inputs_that_are_not_known_are_refused_by_their_field(change, field):
    with pytest.raises(UnsupportedModelError) as refused:
        model(packed(FP8, {**FP8_IN, **change}))
    where = "quantization_config.config_groups.group_0.input_activations."
    assert refused.value.field == where + field


def test_a_format_of_ones_own_says_its_products():
    spec = model({"quant_method": "fp8"})
    (layer, *_) = spec.layers
    alone = replace(
        layer,
        matrices=tuple(
            replace(matrix, format=replace(matrix.format, products="")) for matrix in layer.matrices
        ),
    )
    assert product_dtypes(replace(spec, layers=(alone,) * 4)) == {"bfloat16"}
