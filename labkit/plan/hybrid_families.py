"""Readers of families in which only some layers keep a growing cache of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.plan import delta_net_families, gemma_families, mamba_families, nemotron_families
from labkit.plan.attention_shapes import (
    FULL_ATTENTION,
    attention_layer,
    head_size,
    read_layer_types,
    self_attention,
)
from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import assemble, first_of, layer_count, layer_numbers, whole_number
from labkit.plan.layer_shapes import gated_mlp_matrices, norm
from labkit.plan.model import Experts, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import expert_matrices, read_experts, router
from labkit.plan.recurrent_shapes import by_heads, from_heads, short_convolution, state
from labkit.plan.size_fields import all_sizes_read
from labkit.plan.weights import Matrix


def read_minimax(fields: ConfigFields) -> ModelSpec:
    """MiniMax-Text-01 and M1: lightning attention in most layers, with a matrix a head."""
    hidden, heads, head_dim = (
        fields.positive_int("hidden_size"),
        fields.positive_int("num_attention_heads"),
        head_size(fields),
    )
    experts = read_experts(
        fields,
        first_of(fields, "num_local_experts", "num_experts"),
        "num_experts_per_tok",
        "intermediate_size",
    )
    prefix = "block_sparse_moe"
    block = (
        *router(f"{prefix}.gate", experts.num_experts, hidden),
        *expert_matrices(hidden, experts, f"{prefix}.experts.0", ("w1", "w3", "w2")),
    )
    width = heads * head_dim
    lightning = LayerSpec(
        matrices=(
            norm("input_layernorm", hidden),
            by_heads("self_attn.qkv_proj", 3 * width, hidden, heads),
            by_heads("self_attn.output_gate", width, hidden, heads),
            by_heads("self_attn.norm", width, 1, heads),
            from_heads("self_attn.out_proj", hidden, width, heads),
            norm("post_attention_layernorm", hidden),
            *block,
        ),
        cache=state(fields, 0, heads * head_dim * head_dim, heads),
        experts=experts,
    )
    softmax = attention_layer(fields, self_attention(fields), block, experts)
    return assemble(
        fields, [softmax if attends else lightning for attends in _minimax_layers(fields)]
    )


def _minimax_layers(fields: ConfigFields) -> tuple[bool, ...]:
    """Which layers have softmax attention."""
    if not fields.has("attn_type_list"):
        kinds = read_layer_types(
            fields,
            (FULL_ATTENTION, "linear_attention"),
            lambda i: "linear_attention" if i % 2 else FULL_ATTENTION,
        )
        return tuple(kind == FULL_ATTENTION for kind in kinds)
    return fields.marks("attn_type_list", layer_count(fields))


def read_lfm2(fields: ConfigFields) -> ModelSpec:
    """LFM2: short convolutions, attention in some layers; LFM2-MoE has experts after the first."""
    hidden, layers = fields.positive_int("hidden_size"), layer_count(fields)
    is_moe = fields.word("model_type", "") == "lfm2_moe"
    convolution, kept = short_convolution(
        fields, hidden, fields.positive_int("conv_L_cache", 3), fields.flag("conv_bias")
    )
    width = fields.positive_int("intermediate_size") if is_moe else _lfm2_width(fields)
    dense = gated_mlp_matrices(hidden, width, prefix="feed_forward")
    sparse, experts = _lfm2_experts(fields) if is_moe else (dense, None)
    first_sparse = whole_number(fields, "num_dense_layers", 2) if is_moe else layers
    attention = self_attention(fields, qk_norm="head")
    listed = fields.has("full_attn_idxs")
    full = layer_numbers(fields, "full_attn_idxs") if listed else frozenset(range(layers))
    kinds = read_layer_types(
        fields, (FULL_ATTENTION, "conv"), lambda i: FULL_ATTENTION if i in full else "conv"
    )

    def layer(number: int) -> LayerSpec:
        block, used = (dense, None) if number < first_sparse else (sparse, experts)
        if kinds[number] == FULL_ATTENTION:
            return attention_layer(fields, attention, block, used)
        norms = (norm("operator_norm", hidden), norm("ffn_norm", hidden))
        return LayerSpec((*norms, *convolution, *block), kept, experts=used)

    return assemble(
        fields,
        [layer(number) for number in range(layers)],
        tied=True,
        tied_field=first_of(fields, "tie_embedding", "tie_word_embeddings"),
    )


def _lfm2_width(fields: ConfigFields) -> int:
    """Two thirds of the MLP's nominal width, times a factor, rounded up to a multiple."""
    name = "block_ff_dim" if fields.has("block_ff_dim") else "intermediate_size"
    width = fields.positive_int(name)
    if not fields.flag("block_auto_adjust_ff_dim", True):
        return width
    width = 2 * width // 3
    if fields.has("block_ffn_dim_multiplier") or "block_ffn_dim_multiplier" not in fields.values:
        width = int(fields.number("block_ffn_dim_multiplier", 1.0) * width)
        multiple = fields.positive_int("block_multiple_of", 256)
        width = -(-width // multiple) * multiple
    return width


def _lfm2_experts(fields: ConfigFields) -> tuple[tuple[Matrix, ...], Experts]:
    hidden, prefix = fields.positive_int("hidden_size"), "feed_forward"
    experts = read_experts(fields, "num_experts", "num_experts_per_tok", "moe_intermediate_size")
    has_bias = fields.flag("use_expert_bias", True)
    return (
        *router(
            f"{prefix}.gate",
            experts.num_experts,
            hidden,
            correction=f"{prefix}.expert_bias" if has_bias else "",
        ),
        *expert_matrices(hidden, experts, f"{prefix}.experts.0", ("w1", "w3", "w2")),
    ), experts


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = {
    **all_sizes_read(
        {
            "minimax": read_minimax,
            "minimax_m1": read_minimax,
            "minimax_text_01": read_minimax,
            "lfm2": read_lfm2,
            "lfm2_moe": read_lfm2,
        }
    ),
    **delta_net_families.READERS,
    **gemma_families.READERS,
    **mamba_families.READERS,
    **nemotron_families.READERS,
}
