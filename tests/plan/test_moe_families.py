from __future__ import annotations

from typing import Any

import pytest

from labkit.plan.model import ModelSpec
from tests.plan.transformers_oracle import oracle_parameters

SMALL: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 48,
    "intermediate_size": 56,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
}
EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 2}
DEEPSEEK_EXPERTS = {
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "n_shared_experts": 2,
    "moe_intermediate_size": 20,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
QWEN = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 20}
NO_HEAD_DIM = {name: value for name, value in SMALL.items() if name != "head_dim"}

CONFIGS: dict[str, dict[str, Any]] = {
    "mixtral": {**SMALL, **EXPERTS, "model_type": "mixtral", "sliding_window": 16},
    "mixtral tied": {**SMALL, **EXPERTS, "model_type": "mixtral", "tie_word_embeddings": True},
    "phimoe": {
        **NO_HEAD_DIM,
        **EXPERTS,
        "model_type": "phimoe",
        "attention_bias": True,
        "lm_head_bias": True,
    },
    "olmoe": {**NO_HEAD_DIM, "num_experts": 5, "num_experts_per_tok": 2, "model_type": "olmoe"},
    "granitemoe": {**NO_HEAD_DIM, **EXPERTS, "model_type": "granitemoe"},
    "granitemoeshared": {
        **NO_HEAD_DIM,
        **EXPERTS,
        "model_type": "granitemoeshared",
        "shared_intermediate_size": 24,
    },
    "gpt_oss": {**SMALL, **EXPERTS, "model_type": "gpt_oss", "sliding_window": 16},
    "minimax_m2": {**SMALL, **EXPERTS, "model_type": "minimax_m2"},
    "dbrx": {
        "model_type": "dbrx",
        "vocab_size": 96,
        "d_model": 48,
        "n_heads": 6,
        "n_layers": 3,
        "max_seq_len": 64,
        "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8},
        "ffn_config": {"ffn_hidden_size": 40, "moe_num_experts": 5, "moe_top_k": 2},
    },
    "qwen2_moe": {
        **NO_HEAD_DIM,
        **QWEN,
        "model_type": "qwen2_moe",
        "shared_expert_intermediate_size": 28,
        "mlp_only_layers": [2],
    },
    "qwen3_moe": {**SMALL, **QWEN, "model_type": "qwen3_moe", "mlp_only_layers": [2]},
    "qwen3_moe sparse": {**SMALL, **QWEN, "model_type": "qwen3_moe", "decoder_sparse_step": 2},
    "glm4_moe": {
        **SMALL,
        **DEEPSEEK_EXPERTS,
        "model_type": "glm4_moe",
        "use_qk_norm": True,
        "attention_bias": True,
    },
    "dots1": {**SMALL, **DEEPSEEK_EXPERTS, "model_type": "dots1", "attention_bias": True},
    "ernie4_5_moe": {
        **NO_HEAD_DIM,
        "model_type": "ernie4_5_moe",
        "moe_num_experts": 6,
        "moe_k": 2,
        "moe_intermediate_size": 20,
        "moe_num_shared_experts": 2,
        "use_bias": True,
    },
    "hunyuan_v1_moe": {
        **SMALL,
        "model_type": "hunyuan_v1_moe",
        "num_experts": 6,
        "moe_topk": [2, 2, 2, 2],
    },
    "mimo_v2_flash": {
        **SMALL,
        "model_type": "mimo_v2_flash",
        "num_attention_heads": 8,
        "v_head_dim": 12,
        "sliding_window": 16,
        "n_routed_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 20,
        "layer_types": [
            "full_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
        ],
    },
    "llama4_text": {
        **SMALL,
        **EXPERTS,
        "model_type": "llama4_text",
        "intermediate_size_mlp": 80,
        "interleave_moe_layer_step": 2,
        "attention_chunk_size": 16,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_parameter_counts_of_mixtures_are_those_of_transformers(name: str) -> None:
    config = CONFIGS[name]
    assert ModelSpec.from_hf(config).num_parameters == oracle_parameters(config)
