from __future__ import annotations

from typing import Any

import pytest

from labkit.plan.model import ModelSpec
from tests.plan.transformers_oracle import oracle_parameters

LATENT: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 48,
    "intermediate_size": 56,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "kv_lora_rank": 20,
    "q_lora_rank": 24,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 10,
    "max_position_embeddings": 64,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "n_shared_experts": 2,
    "moe_intermediate_size": 20,
    "n_group": 1,
    "topk_group": 1,
}
INDEXED = {**LATENT, "index_head_dim": 16, "index_n_heads": 4, "index_topk": 8}

CONFIGS: dict[str, dict[str, Any]] = {
    "deepseek_v2": {**LATENT, "model_type": "deepseek_v2", "first_k_dense_replace": 1},
    "deepseek_v2 lite": {
        **LATENT,
        "model_type": "deepseek_v2",
        "first_k_dense_replace": 0,
        "q_lora_rank": None,
        "attention_bias": True,
    },
    "deepseek_v3": {**LATENT, "model_type": "deepseek_v3", "first_k_dense_replace": 3},
    "deepseek_v32": {**INDEXED, "model_type": "deepseek_v32", "first_k_dense_replace": 1},
    "glm4_moe_lite": {**LATENT, "model_type": "glm4_moe_lite"},
    "glm_moe_dsa": {
        **INDEXED,
        "model_type": "glm_moe_dsa",
        "first_k_dense_replace": 1,
        "indexer_types": ["full", "shared", "full", "shared"],
    },
    "longcat_flash": {
        "model_type": "longcat_flash",
        **{name: LATENT[name] for name in ("vocab_size", "hidden_size", "num_attention_heads")},
        **{name: LATENT[name] for name in ("kv_lora_rank", "q_lora_rank", "v_head_dim")},
        **{name: LATENT[name] for name in ("qk_nope_head_dim", "qk_rope_head_dim")},
        "num_layers": 2,
        "ffn_hidden_size": 56,
        "expert_ffn_hidden_size": 20,
        "n_routed_experts": 6,
        "zero_expert_num": 0,
        "moe_topk": 2,
        "max_position_embeddings": 64,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_parameter_counts_of_latent_attention_are_those_of_transformers(name: str) -> None:
    config = CONFIGS[name]
    assert ModelSpec.from_hf(config).num_parameters == oracle_parameters(config)
