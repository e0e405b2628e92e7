"""Decoders with layers that look at an image instead of at the tokens before (Llama 3.2 Vision)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from labkit.plan.config_fields import ConfigFields
from labkit.plan.dense_decoder import (
    MOST_LAYERS,
    Family,
    assemble,
    attention_layer,
    layer_matrices,
    read_head_dim,
    read_kv_heads,
    size,
)
from labkit.plan.family_assembly import layer_numbers, read_dtype, stored_as
from labkit.plan.layer_shapes import norm
from labkit.plan.model import CacheKind, LayerCache, ModelSpec
from labkit.plan.size_fields import all_sizes_read

_TEXT = Family(kv_heads="query")
_IMAGE_TOKENS = 8
"""Rows of the embedding beyond the vocabulary, which the LM head does not have."""


def read_mllama(fields: ConfigFields) -> ModelSpec:
    """Keys and values of an image are as long as the image: they are not counted as a cache."""
    hidden = size(fields, _TEXT, "hidden_size")
    heads = size(fields, _TEXT, "num_attention_heads")
    kv_heads = read_kv_heads(fields, _TEXT, heads)
    head_dim = read_head_dim(fields, _TEXT, hidden, heads)
    width = size(fields, _TEXT, "intermediate_size")
    count = size(fields, _TEXT, "num_hidden_layers", most=MOST_LAYERS)
    image_layers = layer_numbers(fields, "cross_attention_layers")
    if any(index >= count for index in image_layers):
        raise fields.refuse("cross_attention_layers", f"layers are numbered 0 to {count - 1}")
    family, dtype = replace(_TEXT, qk_norm="head"), read_dtype(fields)
    gates = (norm("cross_attn_attn_gate", 1), norm("cross_attn_mlp_gate", 1))
    sizes = (hidden, heads, kv_heads, head_dim, width)
    text = stored_as(layer_matrices(fields, _TEXT, *sizes), dtype)
    image = stored_as((*layer_matrices(fields, family, *sizes), *gates), dtype)
    text_layer = attention_layer(text, heads, kv_heads, head_dim, None)
    image_layer = replace(text_layer, matrices=image, cache=LayerCache(CacheKind.NONE))
    layers = tuple(image_layer if i in image_layers else text_layer for i in range(count))
    spec = assemble(fields, _TEXT, hidden, layers)
    words = spec.embedding[0]
    rows = words.out_features + _IMAGE_TOKENS
    return replace(
        spec,
        embedding=(replace(words, out_features=rows), *spec.embedding[1:]),
        notes=("keys and values that layers keep of an image are not counted",),
    )


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {"mllama_text_model": read_mllama}
)
"""By `model_type`."""
