"""A Hugging Face config read as a DecoderSpec, or refused by the field that stops it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labkit.plan.config_fields import ConfigFields, UnsupportedModelError, is_whole
from labkit.plan.decoder import DecoderSpec
from labkit.plan.rope_config import read_rope

SUPPORTED_MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")

_EXPERT_FIELDS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_intermediate_size")
_LATENT_FIELDS = ("kv_lora_rank", "q_lora_rank")

# Fields with which relatives of these models change the arithmetic, and the values that do not.
# Null, false and empty never do.
_OTHER_ARITHMETIC: dict[str, tuple[object, ...]] = {
    # Gemma
    "attn_logit_softcapping": (0,),
    "final_logit_softcapping": (0,),
    "query_pre_attn_scalar": (),
    # Granite
    "attention_multiplier": (),
    "embedding_multiplier": (1,),
    "logits_scaling": (1,),
    "residual_multiplier": (1,),
    "position_embedding_type": ("rope", "rotary"),
    # Cohere
    "logit_scale": (1,),
    "use_qk_norm": (),
    # MiniCPM
    "dim_model_base": (),
    "scale_depth": (),
    "scale_emb": (1,),
    # Falcon
    "alibi": (),
    "key_multiplier": (1,),
    "lm_head_multiplier": (1,),
    "parallel_attn": (),
    # GPT-NeoX, StableLM, Phi
    "qk_layernorm": (),
    "rotary_pct": (1,),
    "use_parallel_residual": (),
    # Llama 4, SmolLM3
    "attention_chunk_size": (),
    "attn_temperature_tuning": (),
    "no_rope_layers": (),
    # OLMo, gpt-oss, Qwen2-VL, GPT-2
    "clip_qkv": (),
    "swiglu_limit": (),
    "use_mrope": (),
    "scale_attn_by_inverse_layer_idx": (),
    # any
    "add_cross_attention": (),
    "is_encoder_decoder": (),
    "rope_interleave": (),
    "rope_interleaved": (),
}


def read_spec(config: Mapping[str, Any]) -> DecoderSpec:
    """The spec a config describes. Raises UnsupportedModelError."""
    fields = ConfigFields(config)
    model_type = config.get("model_type")
    if model_type not in SUPPORTED_MODEL_TYPES:
        raise fields.refuse("model_type", f"supported are {', '.join(SUPPORTED_MODEL_TYPES)}")
    _refuse_unsupported(fields, model_type)
    num_heads = fields.positive_int("num_attention_heads")
    hidden_size = fields.positive_int("hidden_size")
    num_layers = fields.positive_int("num_hidden_layers")
    vocab_size = fields.positive_int("vocab_size")
    max_positions = fields.positive_int("max_position_embeddings")
    attention_bias = fields.flag("attention_bias")
    if model_type == "mistral" and attention_bias:
        raise fields.refuse("attention_bias", "Mistral layers have no bias")
    mlp_bias = fields.flag("mlp_bias")
    if model_type != "llama" and mlp_bias:
        raise fields.refuse("mlp_bias", f"the MLP of {model_type} has no bias")
    rope_theta, rope_scaling = read_rope(fields, max_positions)
    return DecoderSpec(
        model_type=model_type,
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=_kv_heads(fields, model_type, num_heads),
        head_dim=_head_dim(fields, model_type, hidden_size, num_heads),
        intermediate_size=fields.positive_int("intermediate_size"),
        vocab_size=vocab_size,
        tie_word_embeddings=fields.flag("tie_word_embeddings"),
        qkv_bias=attention_bias or model_type == "qwen2",
        o_bias=attention_bias and model_type != "qwen2",
        mlp_bias=mlp_bias,
        qk_norm=model_type == "qwen3",
        rms_norm_eps=fields.number("rms_norm_eps", 1e-6),
        rope_theta=rope_theta,
        rope_scaling=rope_scaling,
        sliding_window=_sliding_window(fields, model_type, num_layers),
        max_position_embeddings=max_positions,
        bos_token_id=_one_token_id(fields, "bos_token_id", vocab_size),
        eos_token_ids=fields.token_ids("eos_token_id", vocab_size),
        dtype=fields.word("dtype", fields.word("torch_dtype", "float32")),
    )


def read_config_file(path: str | Path) -> Mapping[str, Any]:
    """The mapping in a `config.json`, given by its own path or its directory's.

    Raises FileNotFoundError, or ValueError for a file that holds no JSON object.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    if not file.is_file():
        raise FileNotFoundError(f"no model config at {file}")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not readable JSON: {error}") from error
    if not isinstance(config, Mapping):
        raise ValueError(f"{file} holds a JSON {type(config).__name__}, not an object")
    return config


def _refuse_unsupported(fields: ConfigFields, model_type: str) -> None:
    config = fields.values
    for field in _EXPERT_FIELDS:
        if config.get(field):
            raise fields.refuse(field, "mixture of experts is not supported")
    for field in _LATENT_FIELDS:
        if config.get(field):
            raise fields.refuse(field, "latent attention is not supported")
    if config.get("quantization_config") is not None:
        raise fields.refuse("quantization_config", "load unquantised weights")
    if config.get("hidden_act", "silu") != "silu":
        raise fields.refuse("hidden_act", "the gated MLP uses silu only")
    if not fields.flag("is_causal", True):
        raise fields.refuse("is_causal", "attention looks back only")
    for field, neutral in _OTHER_ARITHMETIC.items():
        value = config.get(field)
        if value is None or value is False or value in ([], {}, *neutral):
            continue
        if field == "use_qk_norm" and model_type == "qwen3" and value is True:
            continue
        raise fields.refuse(field, "it changes the model's arithmetic and is not implemented")


def _one_token_id(fields: ConfigFields, field: str, vocab_size: int) -> int | None:
    if isinstance(fields.values.get(field), list | tuple):
        raise fields.refuse(field, "one token id is needed, not a list")
    ids = fields.token_ids(field, vocab_size)
    return ids[0] if ids else None


def _kv_heads(fields: ConfigFields, model_type: str, num_heads: int) -> int:
    field = "num_key_value_heads"
    if not fields.has(field) and (field in fields.values or model_type == "llama"):
        return num_heads
    kv_heads = fields.positive_int(field)
    if num_heads % kv_heads:
        raise fields.refuse(field, f"{num_heads} attention heads must share them")
    return kv_heads


def _head_dim(fields: ConfigFields, model_type: str, hidden_size: int, num_heads: int) -> int:
    if fields.has("head_dim"):
        head_dim = fields.positive_int("head_dim")
    elif model_type == "qwen3":
        raise fields.refuse("head_dim", "Qwen3 does not derive it from hidden_size")
    else:
        head_dim = hidden_size // num_heads
        if head_dim * num_heads != hidden_size:
            raise fields.refuse("hidden_size", f"not a multiple of {num_heads} heads, no head_dim")
    if head_dim % 2:
        raise UnsupportedModelError("head_dim", head_dim, "rotary embeddings need it to be even")
    return head_dim


def _sliding_window(fields: ConfigFields, model_type: str, num_layers: int) -> int | None:
    layer_types = fields.words("layer_types")
    kinds = set(layer_types)
    if kinds - {"full_attention", "sliding_attention"} or len(kinds) > 1:
        raise fields.refuse("layer_types", "all layers must be of one kind, full or sliding")
    if layer_types and len(layer_types) != num_layers:
        raise fields.refuse("layer_types", f"{num_layers} layers need as many types")
    if model_type == "llama":
        if kinds == {"sliding_attention"}:
            raise fields.refuse("layer_types", "Llama attention has no window")
        return None
    if kinds == {"full_attention"}:
        return None
    if model_type == "mistral":
        # Left out of the file, transformers' MistralConfig takes 4096; null means none.
        if "sliding_window" in fields.values and not fields.has("sliding_window"):
            return None
        return fields.positive_int("sliding_window", 4096)
    if not fields.flag("use_sliding_window") or not fields.has("sliding_window"):
        return None
    if not kinds:
        full_layers = fields.values.get("max_window_layers", 28)
        if not is_whole(full_layers) or full_layers < 0 or 0 < full_layers < num_layers:
            raise fields.refuse(
                "max_window_layers", f"a window on all of the {num_layers} layers or on none"
            )
        if full_layers >= num_layers:
            return None
    return fields.positive_int("sliding_window")
