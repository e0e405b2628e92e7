"""Configs that cannot be sized are refused by the name of the field."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.plan.config_fields import UnsupportedModelError
from labkit.plan.model import ModelSpec
from tests.plan.test_hybrid_families import CONFIGS as HYBRIDS
from tests.plan.test_latent_families import CONFIGS as LATENT
from tests.plan.test_moe_families import CONFIGS as MIXTURES

ALL = {**MIXTURES, **LATENT, **HYBRIDS}
WRONG: tuple[object, ...] = (-1, 1.5, "x", [-1], float("nan"), {"a": 1})
SIZES = (
    *("vocab_size", "hidden_size", "d_model", "num_attention_heads", "n_heads", "kv_lora_rank"),
    *("num_hidden_layers", "num_layers", "n_layers", "moe_intermediate_size", "num_experts"),
    *("num_local_experts", "n_routed_experts", "num_experts_per_tok", "qk_rope_head_dim"),
    *("state_size", "mamba_d_state", "linear_num_key_heads", "num_nextn_predict_layers"),
    *("first_k_dense_replace", "num_kv_shared_layers", "tie_word_embeddings", "dtype"),
)


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_value_is_refused_by_its_own_name(name: str) -> None:
    config = ALL[name]
    tried = [field for field in SIZES if field in config]
    assert tried
    for field in tried:
        for value in WRONG:
            with pytest.raises(UnsupportedModelError) as refusal:
                ModelSpec.from_hf(config | {field: value})
            assert refusal.value.field == field, (field, value)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("field", ["routed_expert_hidden_size", "num_side_heads", "hc_mult"])
def test_a_field_that_may_change_sizes_and_is_not_known_is_refused(name: str, field: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f"{field} = 7"):
        ModelSpec.from_hf(ALL[name] | {field: 7})


@pytest.mark.parametrize(
    ("name", "changes", "field"),
    [
        ("mixtral", {"num_experts_per_tok": 6}, "num_experts_per_tok"),
        ("mixtral", {"num_key_value_heads": 4}, "num_key_value_heads"),
        ("mixtral", {"n_shared_experts": 1}, "n_shared_experts"),
        ("mixtral", {"layer_types": ["sliding_attention"] * 4}, "layer_types"),
        ("mixtral", {"dtype": "int7"}, "dtype"),
        ("olmoe", {"num_attention_heads": 5, "num_key_value_heads": 5}, "head_dim"),
        ("qwen2_moe", {"use_sliding_window": True}, "use_sliding_window"),
        ("qwen3_moe", {"shared_expert_intermediate_size": 8}, "shared_expert_intermediate_size"),
        ("gpt_oss", {"layer_types": ["full_attention"]}, "layer_types"),
        ("gpt_oss", {"layer_types": ["linear_attention"] * 4}, "layer_types"),
        ("dbrx", {"attn_config": {"kv_n_heads": 4}}, "attn_config.kv_n_heads"),
        ("hunyuan_v1_moe", {"moe_topk": [1, 2, 1, 2]}, "moe_topk"),
        ("hunyuan_v1_moe", {"use_cla": True}, "use_cla"),
        ("llama4_text", {"no_rope_layers": [1]}, "no_rope_layers"),
        ("deepseek_v3", {"moe_layer_freq": 2}, "moe_layer_freq"),
        ("deepseek_v3", {"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ("qwen3_next", {"linear_num_value_heads": 5}, "linear_num_value_heads"),
        ("qwen3_next", {"attn_output_gate": False}, "attn_output_gate"),
        ("qwen3_next", {"mamba_ssm_dtype": "int8"}, "mamba_ssm_dtype"),
        ("gemma4", {"num_kv_shared_layers": 5}, "num_kv_shared_layers"),
        ("deepseek_v2", {"use_mla": False}, "use_mla"),
        ("falcon_h1", {"mamba_use_mlp": False}, "mamba_use_mlp"),
        ("jamba", {"mamba_inner_layernorms": False}, "mamba_inner_layernorms"),
        ("jamba", {"attn_layer_offset": 4}, "attn_layer_offset"),
        ("bamba", {"mamba_n_heads": 5}, "mamba_d_head"),
        ("nemotron_h", {"hybrid_override_pattern": "M-X"}, "hybrid_override_pattern"),
        ("nemotron_h", {"num_hidden_layers": 9}, "num_hidden_layers"),
        ("kimi_linear", {"first_k_dense_replace": None, "moe_layer_freq": 2}, "moe_layer_freq"),
        ("minimax", {"attn_type_list": [0, 1, 2, 1]}, "attn_type_list"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    name: str, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(UnsupportedModelError) as refusal:
        ModelSpec.from_hf(ALL[name] | changes)
    assert refusal.value.field == field
