"""Readers of mixtures whose local layers have heads of their own: MiMo-V2-Flash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from labkit.plan.attention_shapes import FULL_ATTENTION, SLIDING_ATTENTION, read_layer_types
from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import assemble, first_of, layer_count
from labkit.plan.layer_shapes import attention_matrices, gated_mlp_matrices, norm
from labkit.plan.model import CacheKind, LayerCache, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import deepseek_experts
from labkit.plan.size_fields import all_sizes_read
from labkit.plan.weights import Matrix, Split


def read_mimo_v2(fields: ConfigFields) -> ModelSpec:
    """MiMo-V2-Flash: values narrower than keys, more KV heads and sinks in local layers.

    Its checkpoint also holds layers of multi-token prediction, which its config does not name.
    """
    hidden = fields.positive_int("hidden_size")
    block, experts = deepseek_experts(fields, correction=True)
    kinds = _pattern(
        fields,
        "hybrid_layer_pattern",
        "layer_types",
        (FULL_ATTENTION, SLIDING_ATTENTION),
        lambda i: FULL_ATTENTION if i == 0 or not (i + 1) % 6 else SLIDING_ATTENTION,
    )
    mlps = _pattern(
        fields,
        "moe_layer_freq",
        "mlp_layer_types",
        ("dense", "sparse"),
        lambda i: "sparse" if i else "dense",
    )

    def layer(kind: str, mlp: str) -> LayerSpec:
        is_sparse, is_local = mlp == "sparse", kind == SLIDING_ATTENTION
        width = fields.positive_int("intermediate_size")
        used = block if is_sparse else gated_mlp_matrices(hidden, width)
        attention = _mimo_attention(fields, is_local=is_local)
        return replace(
            attention,
            matrices=(
                norm("input_layernorm", hidden),
                *attention.matrices,
                norm("post_attention_layernorm", hidden),
                *used,
            ),
            experts=experts if is_sparse else None,
        )

    return assemble(
        fields,
        [layer(kind, mlp) for kind, mlp in zip(kinds, mlps, strict=True)],
        notes=("multi-token prediction is not counted: the config does not describe it",),
    )


def _mimo_attention(fields: ConfigFields, *, is_local: bool) -> LayerSpec:
    heads = fields.positive_int("num_attention_heads")
    kv_heads = fields.positive_int("num_key_value_heads")
    head_dim, value_dim = fields.positive_int("head_dim"), fields.positive_int("v_head_dim")
    local_kv = fields.positive_int("swa_num_key_value_heads", 2 * kv_heads)
    local = (
        fields.positive_int("swa_num_attention_heads", heads),
        local_kv,
        fields.positive_int("swa_head_dim", head_dim),
        fields.positive_int("swa_v_head_dim", value_dim),
    )
    if is_local:
        heads, kv_heads, head_dim, value_dim = local
    if heads % kv_heads:
        field = "swa_num_key_value_heads" if is_local else "num_key_value_heads"
        raise fields.refuse(field, f"{heads} attention heads must share them")
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    query, key, value, output = attention_matrices(hidden, heads, kv_heads, head_dim, qkv_bias=bias)
    matrices: tuple[Matrix, ...] = (
        query,
        key,
        replace(value, out_features=kv_heads * value_dim),
        replace(output, in_features=heads * value_dim),
    )
    local_sinks = fields.flag("add_swa_attention_sink_bias", True)
    full_sinks = fields.flag("add_full_attention_sink_bias")
    if local_sinks if is_local else full_sinks:
        sinks = Matrix("self_attn.sinks", "attention", heads, 1, Split.COLUMN, heads=heads)
        matrices = (*matrices, sinks)
    window = None
    if is_local:
        window = fields.positive_int(first_of(fields, "sliding_window", "sliding_window_size"))
    return LayerSpec(
        matrices=matrices,
        cache=LayerCache(
            CacheKind.WINDOW if is_local else CacheKind.FULL,
            kv_heads,
            head_dim + value_dim,
            window=window,
        ),
        num_heads=heads,
        score_dim=head_dim,
        value_dim=value_dim,
    )


def _pattern(
    fields: ConfigFields,
    marks_field: str,
    words_field: str,
    words: tuple[str, str],
    default: Callable[[int], str],
) -> tuple[str, ...]:
    """A 0 or 1 for each layer, or the words these stand for."""
    if not fields.has(marks_field):
        return read_layer_types(fields, words, default, words_field)
    return tuple(words[mark] for mark in fields.marks(marks_field, layer_count(fields)))


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {"mimo_v2_flash": read_mimo_v2}
)
