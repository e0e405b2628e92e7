"""Grouped-query attention of a family, from the fields that families share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import layer_count
from labkit.plan.layer_shapes import NormOfHeads, attention_matrices, norm
from labkit.plan.model import CacheKind, Experts, LayerCache, LayerSpec
from labkit.plan.weights import Matrix, Split

FULL_ATTENTION = "full_attention"
SLIDING_ATTENTION = "sliding_attention"


def kv_head_count(fields: ConfigFields) -> int:
    """KV heads; as many as query heads where the config does not say."""
    heads = fields.positive_int("num_attention_heads")
    kv_heads = fields.positive_int("num_key_value_heads", heads)
    if heads % kv_heads:
        raise fields.refuse("num_key_value_heads", f"{heads} attention heads must share them")
    return kv_heads


def head_size(fields: ConfigFields) -> int:
    """Elements of a head; the hidden size over the heads where the config does not say."""
    if fields.has("head_dim"):
        return fields.positive_int("head_dim")
    hidden, heads = fields.positive_int("hidden_size"), fields.positive_int("num_attention_heads")
    if hidden % heads:
        raise fields.refuse("head_dim", f"hidden_size {hidden} does not divide by {heads} heads")
    return hidden // heads


def self_attention(
    fields: ConfigFields,
    *,
    qkv_bias: bool = False,
    o_bias: bool = False,
    qk_norm: NormOfHeads = "none",
    output_gate: bool = False,
    sinks: bool = False,
) -> tuple[Matrix, ...]:
    """The projections, and what some families add.

    `output_gate`: q_proj also makes a gate of each head's output. `sinks`: a logit for each head.
    """
    hidden, heads = fields.positive_int("hidden_size"), fields.positive_int("num_attention_heads")
    kv_heads, head_dim = kv_head_count(fields), head_size(fields)
    query, *rest = attention_matrices(
        hidden, heads, kv_heads, head_dim, qkv_bias=qkv_bias, o_bias=o_bias, qk_norm=qk_norm
    )
    if output_gate:
        query = replace(query, out_features=2 * query.out_features)
    if sinks:
        rest.append(Matrix("self_attn.sinks", "attention", heads, 1, Split.COLUMN, heads=heads))
    return (query, *rest)


def attention_layer(
    fields: ConfigFields,
    attention: tuple[Matrix, ...],
    block: tuple[Matrix, ...],
    experts: Experts | None = None,
    *,
    window: int | None = None,
    norm_bias: bool = False,
) -> LayerSpec:
    """Norm, attention, norm, and the block it is given."""
    hidden, head_dim = fields.positive_int("hidden_size"), head_size(fields)
    return LayerSpec(
        matrices=(
            norm("input_layernorm", hidden, bias=norm_bias),
            *attention,
            norm("post_attention_layernorm", hidden, bias=norm_bias),
            *block,
        ),
        cache=attention_cache(kv_head_count(fields), head_dim, window),
        num_heads=fields.positive_int("num_attention_heads"),
        score_dim=head_dim,
        value_dim=head_dim,
        experts=experts,
    )


def attention_cache(kv_heads: int, head_dim: int, window: int | None = None) -> LayerCache:
    """Keys and values of every token, or of the last `window`."""
    kind = CacheKind.FULL if window is None else CacheKind.WINDOW
    return LayerCache(kind, kv_heads, 2 * head_dim, window=window)


def read_layer_types(
    fields: ConfigFields,
    known: tuple[str, ...],
    default: Callable[[int], str],
    field: str = "layer_types",
) -> tuple[str, ...]:
    """What each layer is: listed in the config, or by the family's rule for layer i from 0."""
    count = layer_count(fields)
    if not fields.has(field):
        return tuple(default(i) for i in range(count))
    kinds = fields.words(field)
    if len(kinds) != count:
        raise fields.refuse(field, f"one entry for each of {count} layers is needed")
    for kind in kinds:
        if kind not in known:
            raise fields.refuse(field, f"{kind!r} is not known here; known are {', '.join(known)}")
    return kinds


def window_of_all(fields: ConfigFields) -> int | None:
    """A sliding window that every layer has; one as long as the longest sequence is none."""
    if not fields.has("sliding_window"):
        return None
    window = fields.positive_int("sliding_window")
    longest = fields.positive_int("max_position_embeddings", window + 1)
    return window if window < longest else None
