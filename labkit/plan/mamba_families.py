"""Readers of state-space models, and of their hybrids with attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from labkit.plan.attention_shapes import (
    FULL_ATTENTION,
    attention_layer,
    read_layer_types,
    self_attention,
)
from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import (
    assemble,
    first_of,
    layer_count,
    layer_numbers,
    whole_number,
)
from labkit.plan.layer_shapes import gated_mlp_matrices
from labkit.plan.mamba_mixers import mamba1_mixer, mamba2_mixer, mamba_layer
from labkit.plan.model import LayerSpec, ModelSpec
from labkit.plan.moe_shapes import expert_matrices, read_experts, router, shared_expert_matrices
from labkit.plan.size_fields import all_sizes_read

_MAMBA_KINDS = ("mamba", "linear_attention")
_ATTENTION_KINDS = ("attention", FULL_ATTENTION)


def read_jamba(fields: ConfigFields) -> ModelSpec:
    """Jamba: attention once in a period of layers, experts once in another."""
    hidden, layers = fields.positive_int("hidden_size"), layer_count(fields)
    names = {
        "expand": "mamba_expand",
        "state": "mamba_d_state",
        "kernel": "mamba_d_conv",
        "rank": "mamba_dt_rank",
        "bias": "mamba_proj_bias",
        "conv_bias": "mamba_conv_bias",
        "prefix": "mamba",
    }
    if not fields.flag("mamba_inner_layernorms", True):
        raise fields.refuse("mamba_inner_layernorms", "the mixer is known with its norms only")
    mixer, attention = mamba1_mixer(fields, names, norms=True), self_attention(fields)
    width = fields.positive_int("intermediate_size")
    dense = gated_mlp_matrices(hidden, width, prefix="feed_forward")
    count, experts, sparse = first_of(fields, "num_experts", "num_local_experts"), None, dense
    if fields.positive_int(count) > 1:
        experts = read_experts(fields, count, "num_experts_per_tok", "intermediate_size")
        sparse = (
            *router("feed_forward.router", experts.num_experts, hidden),
            *expert_matrices(hidden, experts, "feed_forward.experts.0"),
        )
    expert_layers = _once_in(fields, "expert_layer_period", 2, "expert_layer_offset", 1, layers)
    attention_layers = _once_in(fields, "attn_layer_period", 8, "attn_layer_offset", 4, layers)

    def layer(number: int) -> LayerSpec:
        block, used = (sparse, experts) if number in expert_layers else (dense, None)
        if number in attention_layers:
            return attention_layer(fields, attention, block, used)
        return mamba_layer(hidden, mixer, block, used)

    return assemble(fields, [layer(number) for number in range(layers)])


def _once_in(
    fields: ConfigFields,
    period_field: str,
    period_default: int,
    offset_field: str,
    offset_default: int,
    layers: int,
) -> range:
    period = fields.positive_int(period_field, period_default)
    offset = whole_number(fields, offset_field, offset_default)
    if offset >= period:
        raise fields.refuse(offset_field, f"it must be below {period_field} {period}")
    return range(offset, layers, period)


_HYBRID_NAMES = {
    "heads": "mamba_n_heads",
    "head_dim": "mamba_d_head",
    "groups": "mamba_n_groups",
    "state": "mamba_d_state",
    "kernel": "mamba_d_conv",
    "conv_bias": "mamba_conv_bias",
    "prefix": "mamba",
}


def read_bamba(fields: ConfigFields) -> ModelSpec:
    """Bamba: Mamba-2, and attention in the layers that are listed."""
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    inner = fields.positive_int("mamba_expand", 2) * hidden
    mixer = mamba2_mixer(fields, _HYBRID_NAMES, inner, bias=fields.flag("mamba_proj_bias"))
    block = gated_mlp_matrices(
        hidden,
        fields.positive_int("intermediate_size"),
        bias=fields.flag("mlp_bias"),
        prefix="feed_forward",
    )
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias)
    full, layers = layer_numbers(fields, "attn_layer_indices"), layer_count(fields)
    return assemble(
        fields,
        [
            attention_layer(fields, attention, block)
            if number in full
            else mamba_layer(hidden, mixer, block)
            for number in range(layers)
        ],
    )


def read_falcon_h1(fields: ConfigFields) -> ModelSpec:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, which keeps both."""
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    if not fields.flag("mamba_use_mlp", True):
        raise fields.refuse("mamba_use_mlp", "layers are known with an MLP only")
    inner = fields.positive_int("mamba_expand", 2) * hidden
    if fields.has("mamba_d_ssm"):
        inner = fields.positive_int("mamba_d_ssm")
    matrices, kept = mamba2_mixer(
        fields,
        _HYBRID_NAMES,
        inner,
        bias=fields.flag("mamba_proj_bias"),
        out_bias=fields.flag("projectors_bias"),
        gated_norm=fields.flag("mamba_rms_norm"),
    )
    block = gated_mlp_matrices(
        hidden,
        fields.positive_int("intermediate_size"),
        bias=fields.flag("mlp_bias"),
        prefix="feed_forward",
    )
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias)
    layer = attention_layer(fields, attention, (*matrices, *block))
    both = replace(
        layer.cache,
        state_elements=kept.state_elements,
        state_heads=kept.state_heads,
        state_bytes_per_element=kept.state_bytes_per_element,
    )
    return assemble(fields, (replace(layer, cache=both),) * layer_count(fields))


def read_granite_hybrid(fields: ConfigFields) -> ModelSpec:
    """Granite 4: Mamba-2 and attention, a shared MLP, and experts unless there are none."""
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    inner = fields.positive_int("mamba_expand", 2) * hidden
    mixer = mamba2_mixer(fields, _HYBRID_NAMES, inner, bias=fields.flag("mamba_proj_bias"))
    width, experts = fields.positive_int("shared_intermediate_size"), None
    whole_number(fields, "num_experts_per_tok", 0)
    block = gated_mlp_matrices(hidden, width, prefix="shared_mlp")
    if whole_number(fields, "num_local_experts", 0):
        experts = read_experts(
            fields, "num_local_experts", "num_experts_per_tok", "intermediate_size", 1
        )
        prefix = "block_sparse_moe"
        names = ("input_linear", "input_linear", "output_linear")
        block = (
            *router(f"{prefix}.router.layer", experts.num_experts, hidden),
            *expert_matrices(hidden, experts, prefix, names),
            *shared_expert_matrices(hidden, width, "shared_mlp"),
        )
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias)
    kinds = read_layer_types(
        fields,
        (*_MAMBA_KINDS, *_ATTENTION_KINDS),
        lambda _: "mamba",
        first_of(fields, "layer_types", "layers_block_type"),
    )
    return assemble(
        fields,
        [
            attention_layer(fields, attention, block, experts)
            if kind in _ATTENTION_KINDS
            else mamba_layer(hidden, mixer, block, experts)
            for kind in kinds
        ],
    )


def read_mamba(fields: ConfigFields) -> ModelSpec:
    """Mamba and Falcon-Mamba: no attention at all."""
    names = {
        "expand": "expand",
        "state": "state_size",
        "kernel": "conv_kernel",
        "rank": "time_step_rank",
        "bias": "use_bias",
        "conv_bias": "use_conv_bias",
        "prefix": "mixer",
    }
    mixer = mamba1_mixer(fields, names, norms=False)
    layer = mamba_layer(fields.positive_int("hidden_size"), mixer, ())
    return assemble(fields, (layer,) * layer_count(fields), tied=True)


def read_mamba2(fields: ConfigFields) -> ModelSpec:
    names = {
        "heads": "num_heads",
        "head_dim": "head_dim",
        "groups": "n_groups",
        "state": "state_size",
        "kernel": "conv_kernel",
        "conv_bias": "use_conv_bias",
        "prefix": "mixer",
    }
    hidden = fields.positive_int("hidden_size")
    inner = fields.positive_int("expand", 2) * hidden
    mixer = mamba2_mixer(fields, names, inner, bias=fields.flag("use_bias"))
    return assemble(fields, (mamba_layer(hidden, mixer, ()),) * layer_count(fields))


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        "jamba": read_jamba,
        "bamba": read_bamba,
        "falcon_h1": read_falcon_h1,
        "granitemoehybrid": read_granite_hybrid,
        "mamba": read_mamba,
        "falcon_mamba": read_mamba,
        "mamba2": read_mamba2,
    }
)
