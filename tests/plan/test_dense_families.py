from __future__ import annotations

from typing import Any

import pytest

from labkit.plan import dense_families, early_families
from labkit.plan.config_fields import UnsupportedModelError
from labkit.plan.model import CacheKind, ModelSpec
from labkit.plan.weights import Split
from tests.plan.transformers_oracle import oracle_parameters

SMALL: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 48,
    "intermediate_size": 56,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
SQUARE = {**SMALL, "head_dim": 8}
NO_KV = {k: v for k, v in SMALL.items() if k not in ("head_dim", "num_key_value_heads")}
NO_MLP = {k: v for k, v in NO_KV.items() if k != "intermediate_size"}
GPT = {"vocab_size": 96, "n_embd": 48, "n_layer": 4, "n_head": 6, "n_positions": 64}

# What each family changes on SMALL, or its own whole config.
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama biases": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "mistral": {},
    "mistral no window": {"sliding_window": None},
    "ministral": {},
    "ministral3": {},
    "qwen2": {},
    "qwen2 windows": {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 2},
    "qwen3": {"attention_bias": True},
    "gemma": {},
    "gemma2": {},
    "gemma3_text": {"sliding_window_pattern": 3},
    "vaultgemma": {},
    "phi": {**SQUARE, "qk_layernorm": True},
    "phi3": {"sliding_window": 20},
    "granite": {"mlp_bias": True},
    "granite_swa": {},
    "cohere": {"use_qk_norm": True, "attention_bias": True},
    "cohere2": {"sliding_window_pattern": 3},
    "starcoder2": {"sliding_window": 16},
    "starcoder2 no bias": {"use_bias": False, "tie_word_embeddings": False},
    "stablelm": {**SQUARE, "qk_layernorm": True, "use_qkv_bias": True},
    "stablelm parallel": {**SQUARE, "use_parallel_residual": True},
    "olmo": {},
    "olmo2": {},
    "olmo3": {},
    "glm": {},
    "glm4": {"attention_bias": False},
    "smollm3": {"use_sliding_window": True, "sliding_window": 16},
    "exaone": {},
    "exaone4": {},
    "nemotron": {"attention_bias": True, "mlp_bias": True},
    "internlm3": {},
    "ernie4_5": {"use_bias": True},
    "seed_oss": {"attention_out_bias": True, "mlp_bias": True},
    "hunyuan_v1_dense": {},
    "apertus": {},
    "arcee": {},
    "helium": {**SQUARE},
    "nanochat": {},
    "bitnet": {**SQUARE},
    "cwm": {},
    "iquestcoder": {},
    "hyperclovax": {},
    "hyperclovax no post norms": {"use_post_norm": False},
    "jais2": {},
    "gpt2": {**GPT},
    "gpt2 own MLP": {**GPT, "n_inner": 100, "tie_word_embeddings": False},
    "gptj": {**GPT, "rotary_dim": 4},
    "codegen": {**GPT, "rotary_dim": 4, "n_head": 4},
    "gpt_bigcode": {**GPT},
    "gpt_bigcode many KV heads": {**GPT, "multi_query": False},
    "gpt_neo": {
        "vocab_size": 96,
        "hidden_size": 48,
        "max_position_embeddings": 64,
        "num_layers": 4,
        "num_heads": 6,
        "attention_types": [[["global", "local"], 2]],
    },
    "gpt_neox": {**NO_KV},
    "gpt_neox no bias": {**NO_KV, "attention_bias": False, "tie_word_embeddings": True},
    "falcon": {**NO_MLP},
    "falcon grouped": {**NO_MLP, "new_decoder_architecture": True, "num_kv_heads": 2},
    "falcon one norm": {
        **NO_MLP,
        "new_decoder_architecture": True,
        "num_kv_heads": 2,
        "num_ln_in_parallel_attn": 1,
    },
    "falcon as GPT-3": {**NO_MLP, "multi_query": False, "bias": True, "parallel_attn": False},
    "bloom": {"vocab_size": 96, "hidden_size": 48, "n_layer": 4, "n_head": 6},
    "mpt": {"vocab_size": 96, "d_model": 48, "n_layers": 4, "n_heads": 6},
    "opt": {**NO_MLP, "ffn_dim": 56},
    "opt narrow embedding": {
        **NO_MLP,
        "ffn_dim": 56,
        "word_embed_proj_dim": 24,
        "do_layer_norm_before": False,
    },
    "persimmon": {**NO_KV},
    "persimmon no norms of q and k": {**NO_KV, "qk_layernorm": False},
}
SAME_READER = {
    "phi3_v",
    "qwen2_5_omni_text",
    "qwen2_vl",
    "qwen2_vl_text",
    "qwen2_5_vl",
    "qwen2_5_vl_text",
    "qwen3_vl_text",
}


TEXT_ONLY = {"glm4v_text", "glm_ocr_text"}


def config_of(name: str) -> dict[str, Any]:
    changes = CONFIGS[name]
    whole = changes if "vocab_size" in changes else {**SMALL, **changes}
    return {**whole, "model_type": name.split()[0]}


@pytest.mark.parametrize("name", CONFIGS)
def test_parameter_counts_of_dense_families_are_those_of_transformers(name: str) -> None:
    config = config_of(name)
    assert ModelSpec.from_hf(config).num_parameters == oracle_parameters(config)


@pytest.mark.parametrize("model_type", sorted(TEXT_ONLY))
def test_text_parts_without_a_head_are_those_of_transformers(model_type: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = {**SQUARE, "model_type": model_type}
    built = transformers.AutoConfig.for_model(**config)
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(built)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert ModelSpec.from_hf(config).num_parameters - 96 * 48 == counted


def test_every_dense_family_is_compared_or_named_as_not() -> None:
    compared = {name.split()[0] for name in CONFIGS} | SAME_READER | TEXT_ONLY
    assert compared >= {*dense_families.READERS, *early_families.READERS}


@pytest.mark.parametrize(
    "name",
    [
        "ministral",
        "qwen2",
        "qwen2 windows",
        "gemma2",
        "gemma3_text",
        "vaultgemma",
        "cohere2",
        "olmo3",
        "exaone4",
        "smollm3",
        "cwm",
        "granite_swa",
    ],
)
def test_windows_are_on_the_layers_transformers_puts_them_on(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    config = config_of(name)
    built = transformers.AutoConfig.for_model(**config)
    kinds = [layer.cache.kind for layer in ModelSpec.from_hf(config).layers]
    expected = {"full_attention": CacheKind.FULL, "sliding_attention": CacheKind.WINDOW}
    assert kinds == [expected[kind] for kind in built.layer_types]


def test_a_window_bounds_the_cache_of_its_layers_only() -> None:
    spec = ModelSpec.from_hf({**config_of("gemma3_text"), "sliding_window": 32})
    per_layer = 2 * 2 * 16 * 2  # keys and values, KV heads, head size, bytes
    assert spec.kv_bytes_per_token() == 2 * per_layer
    assert spec.kv_bytes(100) == per_layer * (2 * 100 + 4 * 32)


@pytest.mark.parametrize(("pattern", "full"), [("LLG", [2, 5]), ("LG", [1, 3, 5]), (2, [1, 3, 5])])
def test_exaone_patterns_are_words_or_numbers(pattern: object, full: list[int]) -> None:
    spec = ModelSpec.from_hf({**config_of("exaone4"), "sliding_window_pattern": pattern})
    kinds = [layer.cache.kind for layer in spec.layers]
    assert [i for i, kind in enumerate(kinds) if kind is CacheKind.FULL] == full


def test_layer_types_overrule_the_pattern() -> None:
    types = ["full_attention"] * 5 + ["sliding_attention"]
    spec = ModelSpec.from_hf({**config_of("gemma2"), "layer_types": types})
    assert [layer.cache.window for layer in spec.layers] == [None] * 5 + [4096]


def test_multi_query_models_have_one_kv_head_that_every_rank_copies() -> None:
    spec = ModelSpec.from_hf(config_of("falcon"))
    key = next(m for m in spec.layers[0].matrices if m.name == "self_attn.k_proj")
    assert (spec.num_heads, spec.num_kv_heads) == (6, 1)
    assert (key.heads, key.replicates, key.split) == (1, True, Split.COLUMN)


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        ("llama", {"num_experts": 8}, "num_experts"),
        ("llama", {"kv_lora_rank": 512}, "kv_lora_rank"),
        ("llama", {"layer_types": ["linear_attention"] * 6}, "layer_types"),
        ("llama", {"layer_types": ["full_attention"]}, "layer_types"),
        ("mistral", {"attention_bias": True}, "attention_bias"),
        ("qwen3", {"head_dim": None}, "head_dim"),
        ("llama", {"num_key_value_heads": 4}, "num_key_value_heads"),
        ("llama", {"head_dim": None, "num_attention_heads": 5, "num_key_value_heads": 5}, "hidden"),
        ("gemma2", {"sliding_window": 0}, "sliding_window"),
        ("mpt", {"attn_config": {"attn_type": "multiquery_attention"}}, "attn_config.attn_type"),
        ("mpt", {"no_bias": False}, "no_bias"),
        ("gpt_neo", {"attention_types": [[["global"], 99]]}, "attention_types"),
        ("gpt_neo", {"attention_types": [[["global", "odd"], 2]]}, "attention_types"),
        ("falcon", {"num_ln_in_parallel_attn": 3}, "num_ln_in_parallel_attn"),
        ("gpt2", {"n_head": 5}, "n_embd"),
        ("exaone4", {"sliding_window_pattern": "LXG"}, "sliding_window_pattern"),
        ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers"),
    ],
)
def test_what_a_family_does_not_have_is_refused_by_its_field(
    name: str, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(UnsupportedModelError) as refused:
        ModelSpec.from_hf({**config_of(name), **change})
    assert refused.value.field.startswith(field)
