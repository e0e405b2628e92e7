"""The parameters of a dense Llama-family decoder by Hugging Face name, from a DecoderSpec."""

from __future__ import annotations

import re
from collections.abc import Iterator

from labkit.plan.decoder import DecoderSpec

EMBEDDING = "model.embed_tokens"
FINAL_NORM = "model.norm"
LM_HEAD = "lm_head"

# Written by old checkpoints, recomputed by everybody who loads one.
_DERIVED = re.compile(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq")


def layer_prefix(layer: int) -> str:
    """Name of decoder layer `layer`, without a trailing dot."""
    return f"model.layers.{layer}"


def parameter_shapes(spec: DecoderSpec) -> dict[str, tuple[int, ...]]:
    """Every parameter a checkpoint of this spec must hold, as name -> shape `(out, in)`.

    A tied LM head is the embedding under another name and is not listed.
    """
    shapes: dict[str, tuple[int, ...]] = {
        f"{EMBEDDING}.weight": (spec.vocab_size, spec.hidden_size)
    }
    for layer in range(spec.num_layers):
        prefix = layer_prefix(layer)
        shapes.update((f"{prefix}.{name}", shape) for name, shape in _layer_shapes(spec))
    shapes[f"{FINAL_NORM}.weight"] = (spec.hidden_size,)
    if not spec.tie_word_embeddings:
        shapes[f"{LM_HEAD}.weight"] = (spec.vocab_size, spec.hidden_size)
    return shapes


def optional_shapes(spec: DecoderSpec) -> dict[str, tuple[int, ...]]:
    """Parameters a checkpoint may repeat although the model never reads them."""
    if spec.tie_word_embeddings:
        return {f"{LM_HEAD}.weight": (spec.vocab_size, spec.hidden_size)}
    return {}


def is_derived(name: str) -> bool:
    """True for a tensor that holds no trained value (rotary frequencies)."""
    return _DERIVED.fullmatch(name) is not None


def _layer_shapes(spec: DecoderSpec) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, mlp = spec.hidden_size, spec.intermediate_size
    q_width = spec.num_heads * spec.head_dim
    kv_width = spec.num_kv_heads * spec.head_dim
    yield "input_layernorm.weight", (hidden,)
    yield "post_attention_layernorm.weight", (hidden,)
    for name, out_features, in_features, bias in (
        ("self_attn.q_proj", q_width, hidden, spec.qkv_bias),
        ("self_attn.k_proj", kv_width, hidden, spec.qkv_bias),
        ("self_attn.v_proj", kv_width, hidden, spec.qkv_bias),
        ("self_attn.o_proj", hidden, q_width, spec.o_bias),
        ("mlp.gate_proj", mlp, hidden, spec.mlp_bias),
        ("mlp.up_proj", mlp, hidden, spec.mlp_bias),
        ("mlp.down_proj", hidden, mlp, spec.mlp_bias),
    ):
        yield f"{name}.weight", (out_features, in_features)
        if bias:
            yield f"{name}.bias", (out_features,)
    if spec.qk_norm:
        yield "self_attn.q_norm.weight", (spec.head_dim,)
        yield "self_attn.k_norm.weight", (spec.head_dim,)
