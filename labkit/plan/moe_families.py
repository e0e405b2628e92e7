"""Readers of mixture-of-experts families with plain grouped-query attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import assemble, layer_numbers
from labkit.plan.layer_shapes import attention_matrices, gated_mlp_matrices, norm
from labkit.plan.model import CacheKind, Experts, LayerCache, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import expert_matrices, read_experts, router
from labkit.plan.weights import Matrix


def attention_layer(
    fields: ConfigFields,
    mlp: tuple[Matrix, ...],
    experts: Experts | None,
    *,
    qkv_bias: bool = False,
    o_bias: bool = False,
    qk_norm: bool = False,
    window: int | None = None,
) -> LayerSpec:
    """Norm, grouped-query attention, norm, and the block it is given."""
    hidden, heads = fields.positive_int("hidden_size"), fields.positive_int("num_attention_heads")
    kv_heads = fields.positive_int("num_key_value_heads", heads)
    head_dim = fields.positive_int("head_dim", max(hidden // heads, 1))
    return LayerSpec(
        matrices=(
            norm("input_layernorm", hidden),
            *attention_matrices(
                hidden,
                heads,
                kv_heads,
                head_dim,
                qkv_bias=qkv_bias,
                o_bias=o_bias,
                qk_norm=qk_norm,
            ),
            norm("post_attention_layernorm", hidden),
            *mlp,
        ),
        cache=LayerCache(
            CacheKind.FULL if window is None else CacheKind.WINDOW,
            kv_heads,
            2 * head_dim,
            window=window,
        ),
        num_heads=heads,
        score_dim=head_dim,
        value_dim=head_dim,
        experts=experts,
    )


def read_mixtral(fields: ConfigFields) -> ModelSpec:
    hidden = fields.positive_int("hidden_size")
    experts = read_experts(fields, "num_local_experts", "num_experts_per_tok", "intermediate_size")
    window = fields.positive_int("sliding_window") if fields.has("sliding_window") else None
    layer = attention_layer(
        fields,
        (
            *router("block_sparse_moe.gate", experts.num_experts, hidden),
            *expert_matrices(
                hidden, experts, "block_sparse_moe.experts.0", names=("w1", "w3", "w2")
            ),
        ),
        experts,
        window=window,
    )
    return assemble(fields, (layer,) * fields.positive_int("num_hidden_layers"))


def read_qwen3_moe(fields: ConfigFields) -> ModelSpec:
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    experts = read_experts(fields, "num_experts", "num_experts_per_tok", "moe_intermediate_size")
    sparse = attention_layer(
        fields,
        (
            *router("mlp.gate", experts.num_experts, hidden),
            *expert_matrices(hidden, experts, "mlp.experts.0"),
        ),
        experts,
        qkv_bias=bias,
        o_bias=bias,
        qk_norm=True,
    )
    dense_layers = _dense_layers(fields)
    if not dense_layers:
        return assemble(fields, (sparse,) * fields.positive_int("num_hidden_layers"))
    dense = attention_layer(
        fields,
        gated_mlp_matrices(hidden, fields.positive_int("intermediate_size")),
        None,
        qkv_bias=bias,
        o_bias=bias,
        qk_norm=True,
    )
    layers = range(fields.positive_int("num_hidden_layers"))
    return assemble(fields, [dense if layer in dense_layers else sparse for layer in layers])


def _dense_layers(fields: ConfigFields) -> frozenset[int]:
    """Layers without experts: those listed, and all but each `decoder_sparse_step`-th."""
    listed = layer_numbers(fields, "mlp_only_layers")
    step = fields.positive_int("decoder_sparse_step", 1)
    layers = range(fields.positive_int("num_hidden_layers"))
    return frozenset(layer for layer in layers if layer in listed or (layer + 1) % step)


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = {
    "mixtral": read_mixtral,
    "qwen3_moe": read_qwen3_moe,
}
