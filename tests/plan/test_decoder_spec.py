"""DecoderSpec reads Hugging Face configs and refuses by name what it would get wrong."""

import json
import pickle

import pytest

from labkit.plan.decoder import DecoderSpec, RopeScaling, UnsupportedModelError

# Shapes from the config.json files at huggingface.co: Qwen/Qwen2.5-0.5B,
# HuggingFaceTB/SmolLM2-135M, meta-llama/Llama-3.1-8B, Qwen/Qwen3-32B. The parameter counts are
# those the same pages show under the safetensors files.
QWEN25_05B = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "max_position_embeddings": 32768,
    "max_window_layers": 24,
    "sliding_window": 32768,
    "use_sliding_window": False,
    "rope_theta": 1000000.0,
    "torch_dtype": "bfloat16",
    "eos_token_id": 151643,
}
SMOLLM2_135M = {
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
    "rope_theta": 100000,
}
LLAMA31_8B = {
    "model_type": "llama",
    "attention_bias": False,
    "mlp_bias": False,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "eos_token_id": [128001, 128008, 128009],
}
QWEN3_32B = {
    "model_type": "qwen3",
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "num_hidden_layers": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
}
MISTRAL_7B = {
    "model_type": "mistral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "sliding_window": 4096,
}


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (QWEN25_05B, 494_032_768),
        (SMOLLM2_135M, 134_515_008),
        (LLAMA31_8B, 8_030_261_248),
        (QWEN3_32B, 32_762_123_264),
        (MISTRAL_7B, 7_241_732_096),
    ],
    ids=["qwen2.5-0.5b", "smollm2-135m", "llama-3.1-8b", "qwen3-32b", "mistral-7b"],
)
def test_parameter_counts_are_exact(config, parameters):
    assert DecoderSpec.from_hf(config).num_parameters == parameters


@pytest.mark.parametrize("config", [QWEN25_05B, SMOLLM2_135M, LLAMA31_8B, QWEN3_32B, MISTRAL_7B])
def test_parameter_counts_equal_those_of_transformers(config):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    settings = {key: value for key, value in config.items() if key != "model_type"}
    hf_config = transformers.AutoConfig.for_model(config["model_type"], **settings)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(hf_config)
    assert DecoderSpec.from_hf(config).num_parameters == model.num_parameters()


@pytest.mark.parametrize("o_and_mlp_bias", [False, True])
def test_biases_are_counted(o_and_mlp_bias):
    config = SMOLLM2_135M | {"attention_bias": o_and_mlp_bias, "mlp_bias": o_and_mlp_bias}
    biases = 30 * ((9 + 2 * 3) * 64 + 576 + 2 * 1536 + 576)
    expected = 134_515_008 + biases * o_and_mlp_bias
    assert DecoderSpec.from_hf(config).num_parameters == expected


def test_kv_bytes_count_keys_and_values_of_every_layer():
    assert DecoderSpec.from_hf(LLAMA31_8B).kv_bytes_per_token(2) == 2 * 32 * 8 * 128 * 2 == 131072


def test_fields_come_from_the_config():
    spec = DecoderSpec.from_hf(LLAMA31_8B)
    assert (spec.head_dim, spec.rope_theta, spec.dtype) == (128, 500000.0, "float32")
    assert spec.rope_scaling == RopeScaling("llama3", 8.0, 8192, 1.0, 4.0)
    assert spec.eos_token_ids == (128001, 128008, 128009)
    qwen2 = DecoderSpec.from_hf(QWEN25_05B)
    assert (qwen2.qkv_bias, qwen2.o_bias, qwen2.qk_norm) == (True, False, False)
    assert (qwen2.eos_token_ids, qwen2.dtype) == ((151643,), "bfloat16")
    qwen3 = DecoderSpec.from_hf(QWEN3_32B)
    assert (qwen3.qkv_bias, qwen3.qk_norm, qwen3.head_dim) == (False, True, 128)


def test_both_ways_of_writing_rotary_settings_mean_the_same():
    old = LLAMA31_8B
    new = {key: value for key, value in old.items() if not key.startswith("rope")}
    new["rope_parameters"] = old["rope_scaling"] | {"rope_theta": 500000.0}
    assert DecoderSpec.from_hf(new) == DecoderSpec.from_hf(old)
    older = old | {"rope_scaling": {"type": "linear", "factor": 2.0}}
    assert DecoderSpec.from_hf(older).rope_scaling == RopeScaling("linear", 2.0, 131072)
    default = SMOLLM2_135M | {"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}}
    assert DecoderSpec.from_hf(default).rope_scaling is None
    assert DecoderSpec.from_hf(default).rope_theta == 7.0


def test_a_config_is_read_from_its_file_or_directory(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(QWEN3_32B))
    assert (
        DecoderSpec.from_hf(file)
        == DecoderSpec.from_hf(str(tmp_path))
        == DecoderSpec.from_hf(QWEN3_32B)
    )
    with pytest.raises(FileNotFoundError, match="no model config at"):
        DecoderSpec.from_hf(tmp_path / "elsewhere")


YARN_WITHOUT_FACTOR = {"rope_scaling": {"rope_type": "yarn"}}
PER_LAYER_ROPE = {"rope_parameters": {"full_attention": {"rope_type": "default"}}}


@pytest.mark.parametrize(
    ("config", "change", "field"),
    [
        (LLAMA31_8B, {"model_type": "qwen3_moe"}, "model_type"),
        (LLAMA31_8B, {"model_type": None}, "model_type"),
        (QWEN3_32B, {"num_experts": 128}, "num_experts"),
        (MISTRAL_7B, {"num_local_experts": 8}, "num_local_experts"),
        (LLAMA31_8B, {"kv_lora_rank": 512}, "kv_lora_rank"),
        (LLAMA31_8B, {"hidden_act": "gelu"}, "hidden_act"),
        (LLAMA31_8B, {"quantization_config": {"quant_method": "awq"}}, "quantization_config"),
        (LLAMA31_8B, {"rope_scaling": {"rope_type": "longrope"}}, "rope_type"),
        (LLAMA31_8B, {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type"),
        (LLAMA31_8B, YARN_WITHOUT_FACTOR, "rope_scaling.factor"),
        (LLAMA31_8B, {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "mystery": 1}},
         "rope_scaling.mystery"),
        (LLAMA31_8B, {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
         "rope_scaling.low_freq_factor"),
        (LLAMA31_8B, PER_LAYER_ROPE, "rope_parameters"),
        (LLAMA31_8B, {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        (LLAMA31_8B, {"num_attention_heads": 0}, "num_attention_heads"),
        (LLAMA31_8B, {"hidden_size": None}, "hidden_size"),
        (LLAMA31_8B, {"vocab_size": "many"}, "vocab_size"),
        (LLAMA31_8B, {"num_key_value_heads": 5}, "num_key_value_heads"),
        (LLAMA31_8B, {"hidden_size": 4097}, "hidden_size"),
        (LLAMA31_8B, {"head_dim": 63}, "head_dim"),
        (QWEN3_32B, {"head_dim": None}, "head_dim"),
        (QWEN25_05B, {"use_sliding_window": True, "max_window_layers": 12}, "max_window_layers"),
        (QWEN3_32B, {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        (MISTRAL_7B, {"attention_bias": True}, "attention_bias"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_refused_by_name(config, change, field):
    with pytest.raises(UnsupportedModelError, match=f"config field {field} = ") as refused:
        DecoderSpec.from_hf(config | change)
    assert refused.value.field == field
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize(
    ("config", "change", "window"),
    [
        (MISTRAL_7B, {}, 4096),
        (MISTRAL_7B, {"sliding_window": None}, None),
        (QWEN25_05B, {}, None),
        (QWEN25_05B, {"use_sliding_window": True}, None),
        (QWEN25_05B, {"use_sliding_window": True, "max_window_layers": 0}, 32768),
        (QWEN25_05B, {"layer_types": ["full_attention"] * 24, "use_sliding_window": True}, None),
        (LLAMA31_8B, {"sliding_window": 128}, None),
    ],
)
def test_a_window_counts_only_where_the_model_type_uses_it(config, change, window):
    assert DecoderSpec.from_hf(config | change).sliding_window == window
