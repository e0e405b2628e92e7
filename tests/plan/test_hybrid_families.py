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
    "max_position_embeddings": 64,
}
DELTA_NET = {
    "head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
}
SPARSE = {
    "num_experts": 5,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 20,
    "shared_expert_intermediate_size": 28,
}
MAMBA1 = {"mamba_d_state": 5, "mamba_d_conv": 3, "mamba_expand": 2, "mamba_dt_rank": 7}
MAMBA2 = {
    "mamba_n_heads": 12,
    "mamba_d_head": 8,
    "mamba_n_groups": 2,
    "mamba_d_state": 5,
    "mamba_d_conv": 3,
    "mamba_expand": 2,
}
NEMOTRON = {
    **SMALL,
    "model_type": "nemotron_h",
    "head_dim": 16,
    "mamba_num_heads": 12,
    "mamba_head_dim": 8,
    "n_groups": 2,
    "ssm_state_size": 5,
    "conv_kernel": 3,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 20,
    "moe_shared_expert_intermediate_size": 28,
    "hybrid_override_pattern": "M-*E",
}
GEMMA4 = {
    **SMALL,
    "model_type": "gemma4_text",
    "num_hidden_layers": 6,
    "num_key_value_heads": 3,
    "head_dim": 8,
    "global_head_dim": 16,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 80,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "qwen3_next": {**SMALL, **DELTA_NET, **SPARSE, "model_type": "qwen3_next"},
    "qwen3_next dense": {
        **SMALL,
        **DELTA_NET,
        **SPARSE,
        "model_type": "qwen3_next",
        "mlp_only_layers": [1, 3],
        "attention_bias": True,
    },
    "qwen3_5_moe_text": {**SMALL, **DELTA_NET, **SPARSE, "model_type": "qwen3_5_moe_text"},
    "qwen3_5_text": {**SMALL, **DELTA_NET, "model_type": "qwen3_5_text"},
    "kimi_linear": {
        **SMALL,
        "model_type": "kimi_linear",
        "pad_token_id": 0,
        "num_key_value_heads": 6,
        "kv_lora_rank": 20,
        "q_lora_rank": None,
        "qk_nope_head_dim": 12,
        "qk_rope_head_dim": 8,
        "v_head_dim": 10,
        "num_experts": 6,
        "num_experts_per_token": 2,
        "num_shared_experts": 1,
        "moe_intermediate_size": 20,
        "first_k_dense_replace": 1,
        "linear_attn_config": {
            "full_attn_layers": [4],
            "kda_layers": [1, 2, 3],
            "head_dim": 8,
            "num_heads": 6,
            "short_conv_kernel_size": 3,
        },
    },
    "gemma4": {**GEMMA4},
    "gemma4 keys are values": {
        **GEMMA4,
        "attention_k_eq_v": True,
        "num_global_key_value_heads": 2,
        "enable_moe_block": True,
        "num_experts": 5,
        "top_k_experts": 2,
        "moe_intermediate_size": 20,
    },
    "gemma4 shared": {
        **GEMMA4,
        "num_kv_shared_layers": 3,
        "use_double_wide_mlp": True,
        "hidden_size_per_layer_input": 12,
    },
    "gemma3n_text": {
        **SMALL,
        "model_type": "gemma3n_text",
        "num_hidden_layers": 6,
        "head_dim": 8,
        "sliding_window": 16,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
        "intermediate_size": [56, 56, 56, 64, 64, 64],
        "num_kv_shared_layers": 2,
        "hidden_size_per_layer_input": 12,
        "vocab_size_per_layer_input": 80,
        "laurel_rank": 6,
        "altup_num_inputs": 3,
    },
    "jamba": {
        **SMALL,
        **MAMBA1,
        "model_type": "jamba",
        "num_experts": 5,
        "num_experts_per_tok": 2,
        "attn_layer_period": 4,
        "attn_layer_offset": 2,
    },
    "bamba": {**SMALL, **MAMBA2, "model_type": "bamba", "attn_layer_indices": [1, 3]},
    "falcon_h1": {
        **SMALL,
        **MAMBA2,
        "model_type": "falcon_h1",
        "mamba_d_ssm": 96,
        "mamba_rms_norm": True,
        "projectors_bias": True,
    },
    "granitemoehybrid": {
        **SMALL,
        **MAMBA2,
        "model_type": "granitemoehybrid",
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 28,
        "layer_types": ["mamba", "attention", "mamba", "mamba"],
    },
    "granitemoehybrid dense": {
        **SMALL,
        **MAMBA2,
        "model_type": "granitemoehybrid",
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
        "shared_intermediate_size": 28,
        "layer_types": ["mamba", "attention", "mamba", "mamba"],
        "tie_word_embeddings": True,
    },
    "nemotron_h": NEMOTRON,
    "nemotron_h latent": {**NEMOTRON, "moe_latent_size": 32, "hybrid_override_pattern": "MEM*"},
    "mamba": {
        "model_type": "mamba",
        "vocab_size": 96,
        "hidden_size": 48,
        "num_hidden_layers": 3,
        "state_size": 5,
    },
    "falcon_mamba": {
        "model_type": "falcon_mamba",
        "vocab_size": 96,
        "hidden_size": 48,
        "num_hidden_layers": 3,
        "state_size": 5,
    },
    "mamba2": {
        "model_type": "mamba2",
        "vocab_size": 96,
        "hidden_size": 48,
        "num_hidden_layers": 3,
        "state_size": 5,
        "num_heads": 12,
        "head_dim": 8,
        "n_groups": 2,
    },
    "minimax": {
        **SMALL,
        "model_type": "minimax",
        "head_dim": 16,
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
    },
    "lfm2": {
        **SMALL,
        "model_type": "lfm2",
        "conv_L_cache": 3,
        "full_attn_idxs": [1, 3],
        "block_multiple_of": 8,
    },
    "lfm2_moe": {
        **SMALL,
        "model_type": "lfm2_moe",
        "num_experts": 5,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 20,
        "num_dense_layers": 1,
        "layer_types": ["conv", "full_attention", "conv", "conv"],
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_parameter_counts_of_hybrids_are_those_of_transformers(name: str) -> None:
    config = CONFIGS[name]
    assert ModelSpec.from_hf(config).num_parameters == oracle_parameters(config)
