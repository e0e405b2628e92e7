from __future__ import annotations

from typing import Any

import pytest

from labkit.plan.config_fields import UnsupportedModelError
from labkit.plan.model import CacheKind, ModelSpec

SMALL: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 48,
    "intermediate_size": 56,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
LLAMA = {**SMALL, "model_type": "llama"}

# Public shapes, with the total that the hub gives of the checkpoint.
PUBLIC: dict[str, tuple[dict[str, Any], int]] = {
    "Qwen/Qwen-7B": (
        {
            "model_type": "qwen",
            "vocab_size": 151936,
            "hidden_size": 4096,
            "intermediate_size": 22016,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "kv_channels": 128,
            "no_bias": True,
            "tie_word_embeddings": False,
        },
        7_721_324_544,
    ),
    "zai-org/glm-4-9b": (
        {
            "model_type": "chatglm",
            "padded_vocab_size": 151552,
            "hidden_size": 4096,
            "ffn_hidden_size": 13696,
            "num_layers": 40,
            "num_attention_heads": 32,
            "kv_channels": 128,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "add_qkv_bias": True,
            "add_bias_linear": False,
            "seq_length": 8192,
        },
        9_399_951_360,
    ),
    "internlm/internlm2_5-7b": (
        {
            "model_type": "internlm2",
            "vocab_size": 92544,
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "bias": False,
            "tie_word_embeddings": False,
        },
        7_737_708_544,
    ),
    "baichuan-inc/Baichuan2-7B-Base": (
        {
            "model_type": "baichuan",
            "vocab_size": 125696,
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
        },
        7_505_973_248,
    ),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_totals_are_the_checkpoints(name: str) -> None:
    config, total = PUBLIC[name]
    assert ModelSpec.from_hf(config).num_parameters == total


def test_chatglm_is_glm_by_other_names() -> None:
    config, _ = PUBLIC["zai-org/glm-4-9b"]
    glm = {
        "model_type": "glm",
        "vocab_size": 151552,
        "hidden_size": 4096,
        "intermediate_size": 13696,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "max_position_embeddings": 8192,
    }
    ours, theirs = ModelSpec.from_hf(config), ModelSpec.from_hf(glm)
    assert ours.layers == theirs.layers
    assert ours.num_parameters == theirs.num_parameters


def test_internlm2_takes_its_biases_from_one_flag() -> None:
    config = {**SMALL, "model_type": "internlm2"}
    plain = ModelSpec.from_hf({**config, "bias": False}).num_parameters
    biases = ModelSpec.from_hf({**config, "bias": True}).num_parameters - plain
    assert biases == 3 * (48 + 2 * 2 * 8 + 48)


def test_mimo_counts_multi_token_prediction_beside_the_model() -> None:
    config = {**SMALL, "model_type": "mimo", "attention_bias": True}
    plain = ModelSpec.from_hf(config)
    spec = ModelSpec.from_hf({**config, "num_nextn_predict_layers": 1})
    assert spec.num_parameters == plain.num_parameters
    assert spec.num_mtp_parameters == spec.layers[0].num_parameters + 2 * 48 * 48 + 3 * 48


def block(group: int | None, multiple: float | None) -> dict[str, Any]:
    return {
        "attention": {"n_heads_in_group": group, "no_op": group is None},
        "ffn": {"ffn_mult": multiple, "no_op": multiple is None},
    }


def nas(blocks: list[Any]) -> dict[str, Any]:
    return {**LLAMA, "model_type": "nemotron-nas", "block_configs": blocks}


def test_searched_models_have_what_their_blocks_leave_of_each_layer() -> None:
    spec = ModelSpec.from_hf(nas([block(3, 2.0), block(None, 2.0), block(6, None)]))
    width = 256  # 2 / 3 of 2 * 48, up to a multiple of 256
    whole = {**LLAMA, "intermediate_size": width, "num_hidden_layers": 1}
    llama = ModelSpec.from_hf(whole).layers[0]
    assert {*spec.layers[0].matrices} == {*llama.matrices}
    assert spec.layers[0].cache == llama.cache
    assert spec.layers[1].num_parameters == 48 + 3 * 48 * width
    assert spec.layers[1].cache.kind is CacheKind.NONE
    assert spec.layers[2].num_parameters == 48 + 2 * 48 * 48 + 2 * 48 * 8
    assert spec.kv_bytes_per_token() == 2 * 2 * 8 * (2 + 1)


def test_llama_vision_is_counted_as_transformers_does_and_keeps_no_tokens_of_images() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = {
        **SMALL,
        "model_type": "mllama_text_model",
        "cross_attention_layers": [1],
        "pad_token_id": 0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
    }
    spec = ModelSpec.from_hf(config)
    assert [layer.cache.kind for layer in spec.layers] == [
        CacheKind.FULL,
        CacheKind.NONE,
        CacheKind.FULL,
    ]
    built = transformers.AutoConfig.for_model(**config)
    with torch.device("meta"):
        model = transformers.MllamaForCausalLM(built)
    assert spec.num_parameters == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({**PUBLIC["Qwen/Qwen-7B"][0], "no_bias": False}, "no_bias"),
        ({**PUBLIC["Qwen/Qwen-7B"][0], "intermediate_size": 22017}, "intermediate_size"),
        ({**PUBLIC["zai-org/glm-4-9b"][0], "rmsnorm": False}, "rmsnorm"),
        (nas([block(3, 2.0)]), "block_configs"),
        (nas([1, 2, 3]), "block_configs"),
        (nas([block(4, 1.0)] * 3), "block_configs.0.attention.n_heads_in_group"),
        (nas([block(3, -1.0)] * 3), "block_configs.0.ffn.ffn_mult"),
        ({**SMALL, "model_type": "mllama_text_model", "cross_attention_layers": [3]}, "cross_att"),
    ],
)
def test_what_they_do_not_have_is_refused_by_its_field(config: dict[str, Any], field: str) -> None:
    with pytest.raises(UnsupportedModelError) as refused:
        ModelSpec.from_hf(config)
    assert refused.value.field.startswith(field)
