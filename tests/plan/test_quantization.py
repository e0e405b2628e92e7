from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from labkit.plan.config_fields import UnsupportedModelError
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS
from labkit.plan.weights import Matrix, WeightFormat

HIDDEN, MLP, LAYERS = 256, 512, 3
DENSE: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128,
    "hidden_size": HIDDEN,
    "intermediate_size": MLP,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "torch_dtype": "bfloat16",
}
MOE = {**DENSE, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GROUP = {
    "targets": ["Linear"],
    "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128},
}
CT = {"quant_method": "compressed-tensors", "config_groups": {"group_0": GROUP}}


def quantized(quantization: object, base: dict[str, Any] = DENSE) -> ModelSpec:
    return ModelSpec.from_hf({**base, "quantization_config": quantization})


def weight(spec: ModelSpec, name: str, layer: int = 0) -> Matrix:
    inside = (*spec.layers[layer].matrices, *spec.head, *spec.embedding)
    return next(matrix for matrix in inside if matrix.name.endswith(name))


def stored_bits(matrix: Matrix) -> float:
    return 8 * matrix.format.stored_bytes(matrix.out_features, matrix.in_features)


def test_fp8_blocks_have_a_float32_scale_each_and_a_started_block_counts() -> None:
    spec = quantized({"quant_method": "fp8", "weight_block_size": [128, 128]})
    down = weight(spec, "down_proj")
    assert stored_bits(down) == 8 * HIDDEN * MLP + 32 * (HIDDEN // 128) * (MLP // 128)
    key = weight(spec, "k_proj")  # 128 outputs: one block high
    assert stored_bits(key) == 8 * 128 * HIDDEN + 32 * (HIDDEN // 128)
    assert (down.format.group_size, down.format.group_rows) == (128, 128)
    assert spec.quantization == "FP8 in blocks of 128 x 128"


def test_a_whole_deepseek_v3_is_sized_to_the_byte() -> None:
    """README_WEIGHTS.md: FP8 in blocks of 128 x 128 with float32 scales; embedding, head, norms
    and routers are left in 16 bits."""

    def blocks(rows: int, columns: int) -> int:
        return -(-rows // 128) * -(-columns // 128)

    hidden, norms = 7168, 61 * (2 * 7168 + 1536 + 512) + 7168
    in_16_bits = 2 * 129280 * hidden + norms + 58 * 256 * (hidden + 1)
    attention = (
        blocks(1536, hidden)
        + blocks(128 * 192, 1536)
        + blocks(576, hidden)
        + blocks(128 * 256, 512)
        + blocks(hidden, 128 * 128)
    )
    mlps = 3 * 3 * blocks(18432, hidden) + 58 * 257 * 3 * blocks(2048, hidden)
    scales = 61 * attention + mlps
    total = 671_026_419_200
    spec = MODELS["deepseek-v3"].model
    assert spec.weight_bytes == total + in_16_bits + 4 * scales

    # The published files hold 688,586,727,753 bytes in 91,991 tensors; what they have besides the
    # weights is a header, of some 130 bytes a tensor.
    mtp = [m for layer in spec.mtp_layers for m in layer.matrices] + [*spec.mtp_extra]
    tensors = spec.weight_bytes + sum(matrix.total_bytes for matrix in mtp)
    assert 100 < (688_586_727_753 - tensors) / 91_991 < 160


@pytest.mark.parametrize(("scheme", "bits"), [("dynamic", 32), ("static", 64)])
def test_fp8_without_blocks_has_one_scale_a_matrix(scheme: str, bits: int) -> None:
    spec = quantized({"quant_method": "fp8", "activation_scheme": scheme})
    assert stored_bits(weight(spec, "up_proj")) == 8 * HIDDEN * MLP + bits


def test_fbgemm_has_a_scale_for_each_output() -> None:
    spec = quantized(
        {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head", "model.layers.1"]}
    )
    assert stored_bits(weight(spec, "up_proj")) == 8 * HIDDEN * MLP + 32 * MLP
    assert weight(spec, "up_proj", layer=1).format.name == "bfloat16"


def test_gptq_keeps_scales_zero_points_and_the_order_of_inputs() -> None:
    down = weight(quantized(GPTQ), "down_proj")
    groups = MLP // 128
    assert stored_bits(down) == 4 * HIDDEN * MLP + HIDDEN * groups * (16 + 4) + 32 * MLP


def test_awq_keeps_scales_and_zero_points() -> None:
    down = weight(quantized(AWQ), "down_proj")
    assert stored_bits(down) == 4 * HIDDEN * MLP + HIDDEN * (MLP // 128) * (16 + 4)
    assert quantized(AWQ).quantization == "INT4 (AWQ), groups of 128"


def test_a_group_size_of_minus_one_is_one_scale_an_output() -> None:
    down = weight(quantized({**GPTQ, "group_size": -1}), "down_proj")
    assert down.format.group_size == 0
    assert stored_bits(down) == 4 * HIDDEN * MLP + HIDDEN * (16 + 4) + 32 * MLP


@pytest.mark.parametrize("base", [DENSE, {**DENSE, "intermediate_size": 11008 // 4}])
@pytest.mark.parametrize("config", [GPTQ, AWQ])
def test_group_size_comes_from_metadata_and_never_from_shapes(
    base: dict[str, Any], config: dict[str, Any]
) -> None:
    """A11: 2752 = 21.5 groups of 128. A kernel that divides the width by the number of scale
    rows finds 344 and goes on; here the group stays 128, and without one there is no model."""
    assert weight(quantized(config, base), "down_proj").format.group_size == 128
    without = {name: value for name, value in config.items() if name != "group_size"}
    with pytest.raises(UnsupportedModelError, match=r"quantization_config\.group_size"):
        quantized(without, base)


def test_biases_embeddings_norms_and_head_stay_as_they_were() -> None:
    base = {**DENSE, "model_type": "qwen2"}
    plain, packed = ModelSpec.from_hf(base), quantized(GPTQ, base)
    for part in ("embedding", "norms", "LM head"):
        assert packed.weight_bytes_by_part[part] == plain.weight_bytes_by_part[part]
    query = weight(packed, "q_proj")
    assert query.bytes_each == stored_bits(query) / 8 + 2 * HIDDEN
    assert packed.num_parameters == plain.num_parameters


def test_routers_stay_as_they_were_and_every_expert_is_packed() -> None:
    spec = quantized(AWQ, MOE)
    assert weight(spec, "gate").format.name == "bfloat16"
    expert = weight(spec, "w2")
    assert (expert.copies, expert.format.name) == (4, "int4")
    assert expert.total_bytes == 4 * stored_bits(expert) / 8


def test_gptq_can_pack_the_head_and_only_listed_modules() -> None:
    listed = [["self_attn.q_proj", "self_attn.k_proj"], ["mlp.down_proj"]]
    spec = quantized({**GPTQ, "lm_head": True, "modules_in_block_to_quantize": listed})
    names = {m.name for m, _ in spec.matrices if m.format.name == "int4"}
    assert names == {"self_attn.q_proj", "self_attn.k_proj", "mlp.down_proj", "lm_head"}


def test_gptq_dynamic_rules_change_or_leave_single_modules() -> None:
    rules = {r"-:.*layers\.1\..*": {}, r"+:.*down_proj": {"bits": 8, "group_size": 64}}
    spec = quantized({**GPTQ, "dynamic": rules})
    assert weight(spec, "down_proj", 0).format.name == "int8"
    assert weight(spec, "down_proj", 0).format.group_size == 64
    assert weight(spec, "down_proj", 1).format.name == "bfloat16"
    assert weight(spec, "up_proj", 2).format.name == "int4"
    assert len(spec.layer_kinds) == 2


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        (["lm_head"], set()),
        (["lm_head", "re:.*down_proj$"], {"mlp.down_proj"}),
        (["lm_head", "model.layers.0.mlp.up_proj"], {"mlp.up_proj"}),
        (["lm_head", "re:model.*self_attn.*"], {f"self_attn.{p}_proj" for p in "qkvo"}),
        (["lm_head", "language_model.model.layers.0.mlp.up_proj"], {"mlp.up_proj"}),
        (["lm_head", "model.layers.0.self_attn.qkv_proj"], {f"self_attn.{p}_proj" for p in "qkv"}),
    ],
)
def test_compressed_tensors_ignores_names_and_expressions(
    ignore: list[str], left: set[str]
) -> None:
    layer = quantized({**CT, "ignore": ignore}).layers[0]
    weights = {m.name for m in layer.matrices if m.part != "norms"}
    packed = {m.name for m in layer.matrices if m.format.name == "int4"}
    assert weights - packed == left


def test_compressed_tensors_packs_the_head_unless_it_is_ignored() -> None:
    assert weight(quantized(CT), "lm_head").format.name == "int4"
    assert weight(quantized({**CT, "ignore": ["lm_head"]}), "lm_head").format.name == "bfloat16"


def test_compressed_tensors_groups_by_target() -> None:
    fp8 = {
        "targets": ["re:.*self_attn.*"],
        "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
        "input_activations": {"num_bits": 8, "type": "float", "dynamic": True},
    }
    groups = {"group_0": fp8, "group_1": {**GROUP, "targets": ["re:.*mlp.*"]}}
    spec = quantized({**CT, "config_groups": groups})
    query, down = weight(spec, "q_proj"), weight(spec, "down_proj")
    assert stored_bits(query) == 8 * HIDDEN * HIDDEN + 16 * HIDDEN
    assert stored_bits(down) == 4 * HIDDEN * MLP + 16 * HIDDEN * (MLP // 128) + 128
    assert weight(spec, "lm_head").format.name == "bfloat16"


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, 8 * HIDDEN * MLP + 16 * HIDDEN),
        ({"num_bits": 8, "type": "float", "strategy": "tensor"}, 8 * HIDDEN * MLP + 16),
        (
            {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]},
            8 * HIDDEN * MLP + 16 * 2 * 4,
        ),
        (
            {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
            4 * HIDDEN * MLP + 8 * HIDDEN * MLP // 16 + 32,
        ),
        (
            {
                "num_bits": 4,
                "type": "int",
                "strategy": "group",
                "group_size": 64,
                "symmetric": False,
                "actorder": "group",
            },
            4 * HIDDEN * MLP + (16 + 4) * HIDDEN * MLP // 64 + 32 * MLP + 128,
        ),
    ],
)
def test_compressed_tensors_schemes(weights: dict[str, Any], expected: int) -> None:
    spec = quantized({**CT, "config_groups": {"g": {**GROUP, "weights": weights}}})
    assert stored_bits(weight(spec, "down_proj")) == expected


def test_modelopt_nvfp4_has_fp8_scales_in_groups_of_16() -> None:
    beside = {"quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": "FP8"}
    left = ["lm_head", "model.layers.0*", "model.layers.1.mlp*"]
    spec = quantized({"quantization": {**beside, "exclude_modules": left}})
    down = weight(spec, "down_proj", layer=2)
    assert stored_bits(down) == 4 * HIDDEN * MLP + 8 * HIDDEN * MLP // 16 + 64
    assert weight(spec, "down_proj", layer=0).format.name == "bfloat16"
    assert weight(spec, "down_proj", layer=1).format.name == "bfloat16"
    assert weight(spec, "q_proj", layer=1).format.name == "nvfp4"
    assert "FP8 KV cache" in spec.notes[0]


def test_modelopt_mixed_precision_names_its_modules() -> None:
    layers = {
        "model.layers.0.mlp": {"quant_algo": "NVFP4", "group_size": 16},
        "model.layers.1.mlp.down_proj": {"quant_algo": "FP8"},
    }
    spec = quantized({"quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
    assert weight(spec, "down_proj", 0).format.name == "nvfp4"
    assert weight(spec, "down_proj", 1).format.name == "fp8"
    assert weight(spec, "up_proj", 1).format.name == "bfloat16"
    assert weight(spec, "q_proj", 0).format.name == "bfloat16"


def test_mxfp4_packs_experts_only() -> None:
    spec = MODELS["gpt-oss-120b"].model
    for matrix, _ in spec.matrices:
        assert (matrix.format.name == "mxfp4") == (matrix.part == "experts")
    expert = next(m for m, _ in spec.matrices if m.part == "experts")
    assert expert.format.stored_bytes(64, 32) == 64 * 32 * 4.25 / 8


@pytest.mark.parametrize(
    ("config", "bits"),
    [
        ({"load_in_8bit": True}, 8 * HIDDEN * MLP + 32 * HIDDEN),
        ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, 4.5 * HIDDEN * MLP),
        (
            {"load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            (4 + 8 / 64 + 32 / 64 / 256) * HIDDEN * MLP,
        ),
    ],
)
def test_bitsandbytes(config: dict[str, Any], bits: float) -> None:
    spec = quantized({"quant_method": "bitsandbytes", **config})
    assert stored_bits(weight(spec, "down_proj")) == bits


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"quant_method": "secret"}, "quant_method"),
        ({"quant_method": 4}, "quant_method"),
        ({"bits": 4}, "quant_method"),
        ({**GPTQ, "bits": 5}, "bits"),
        ({**GPTQ, "bits": True}, "bits"),
        ({**GPTQ, "group_size": 0}, "group_size"),
        ({**GPTQ, "group_size": "128"}, "group_size"),
        ({**GPTQ, "checkpoint_format": "bitblas"}, "checkpoint_format"),
        ({**GPTQ, "modules_in_block_to_quantize": ["q"]}, "modules_in_block_to_quantize"),
        ({**AWQ, "version": "marlin"}, "version"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": [128, 0]}, "weight_block_size"),
        ({"quant_method": "fp8", "fmt": "e5m2"}, "fmt"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "modules_to_not_convert"),
        ({"quant_method": "compressed-tensors"}, "config_groups"),
        ({**CT, "format": "marlin-24"}, "format"),
        ({**CT, "sparsity_config": {"format": "sparse-24"}}, "sparsity_config"),
        ({**CT, "config_groups": {"g": {"weights": GROUP["weights"]}}}, "config_groups.g.targets"),
        ({**CT, "ignore": ["re:("]}, "ignore"),
        ({**GPTQ, "dynamic": {"-:(": {}}}, "dynamic"),
        ({"quant_algo": "W3A3"}, "quant_algo"),
        ({"quant_algo": "NVFP4", "group_size": 32}, "group_size"),
        ({"quant_algo": "MIXED_PRECISION"}, "quantized_layers"),
        ({"quant_method": "bitsandbytes"}, "load_in_4bit"),
        (["fp8"], "quantization_config"),
    ],
)
def test_what_is_not_known_is_refused_by_its_field(config: object, field: str) -> None:
    with pytest.raises(UnsupportedModelError) as refused:
        quantized(config)
    assert refused.value.field.removeprefix("quantization_config.") == field


def test_bitnet_packs_four_weights_in_a_byte() -> None:
    spec = quantized({"quant_method": "bitnet", "quantization_mode": "offline"})
    assert stored_bits(weight(spec, "down_proj")) == 2 * HIDDEN * MLP + 16
    with pytest.raises(UnsupportedModelError, match="quantization_mode"):
        quantized({"quant_method": "bitnet", "quantization_mode": "online"})


def test_an_empty_quantisation_config_is_none_at_all() -> None:
    assert quantized({}) == quantized(None) == ModelSpec.from_hf(DENSE)


def test_the_outer_quantisation_holds_for_the_text_part() -> None:
    outer = {"model_type": "llava", "text_config": DENSE, "quantization_config": AWQ}
    assert weight(ModelSpec.from_hf(outer), "down_proj").format.name == "int4"


def test_scales_of_a_matrix_and_of_its_inputs_are_counted() -> None:
    plain = WeightFormat("int4", 4)
    more = dataclasses.replace(plain, column_bits=32, tensor_bits=64)
    assert more.stored_bytes(8, 16) - plain.stored_bytes(8, 16) == 16 * 4 + 8
