"""Readers of Gemma 4 and Gemma 3n: layers that share keys and values, an embedding for each layer.

A layer that shares keys and values projects queries only and reads the cache of an earlier layer
of its type. Checkpoints may hold projections of keys and values for it that nothing reads; they
are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from labkit.plan.attention_shapes import (
    FULL_ATTENTION,
    SLIDING_ATTENTION,
    attention_cache,
    head_size,
    kv_head_count,
    read_layer_types,
)
from labkit.plan.config_fields import ConfigFields, is_whole
from labkit.plan.family_assembly import assemble, layer_count, whole_number
from labkit.plan.layer_shapes import attention_matrices, gated_mlp_matrices, norm, vocabulary
from labkit.plan.model import CacheKind, Experts, LayerCache, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import expert_matrices, read_experts
from labkit.plan.size_fields import all_sizes_read, understood
from labkit.plan.weights import Matrix, Split

_KINDS = (FULL_ATTENTION, SLIDING_ATTENTION)
_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)


def _shared_layers(fields: ConfigFields, kinds: tuple[str, ...], default: int) -> range:
    """The last layers, which read the cache of an earlier one of their type."""
    count = whole_number(fields, "num_kv_shared_layers", default)
    first = len(kinds) - count
    if first < 0 or (count and set(kinds[:first]) != set(kinds)):
        raise fields.refuse("num_kv_shared_layers", "a layer of each type before them must cache")
    return range(first, len(kinds))


def _attention_layer(
    fields: ConfigFields,
    block: tuple[Matrix, ...],
    *,
    kv_heads: int,
    head_dim: int,
    window: int | None,
    shares: bool,
    keys_are_values: bool = False,
    experts: Experts | None = None,
) -> LayerSpec:
    hidden, heads = fields.positive_int("hidden_size"), fields.positive_int("num_attention_heads")
    bias = fields.flag("attention_bias")
    attention = attention_matrices(
        hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias, qk_norm="head"
    )
    absent = {"k_proj", "v_proj", "k_norm"} if shares else {"v_proj"} if keys_are_values else set()
    cache = attention_cache(kv_heads, head_dim, window)
    return LayerSpec(
        matrices=(
            *(norm(name, hidden) for name in _NORMS),
            *(matrix for matrix in attention if matrix.name.split(".")[1] not in absent),
            *block,
        ),
        cache=LayerCache(CacheKind.NONE) if shares else cache,
        num_heads=heads,
        score_dim=head_dim,
        value_dim=head_dim,
        experts=experts,
    )


def _per_layer_input(hidden: int, width: int) -> tuple[Matrix, ...]:
    """What a layer does with its own embedding of a token."""
    return (
        Matrix("per_layer_input_gate", "per-layer input", width, hidden),
        Matrix("per_layer_projection", "per-layer input", hidden, width),
        norm("post_per_layer_input_norm", hidden),
    )


def _per_layer_embedding(fields: ConfigFields, width: int) -> tuple[Matrix, ...]:
    """The embeddings of all layers in one table, and a projection of the model's own embedding."""
    hidden, joint = fields.positive_int("hidden_size"), layer_count(fields) * width
    vocab = fields.positive_int("vocab_size_per_layer_input", fields.positive_int("vocab_size"))
    return (
        vocabulary("model.embed_tokens_per_layer", "embedding", vocab, joint),
        Matrix("model.per_layer_model_projection", "per-layer input", joint, hidden, Split.COLUMN),
        norm("model.per_layer_projection_norm", width),
    )


def read_gemma4(fields: ConfigFields) -> ModelSpec:
    """Gemma 4: wider heads and fewer KV heads in global layers, experts beside a dense MLP."""
    hidden, width = fields.positive_int("hidden_size"), fields.positive_int("intermediate_size")
    kinds = _gemma4_layer_types(fields)
    shared = _shared_layers(fields, kinds, 0)
    keys_are_values = fields.flag("attention_k_eq_v")
    global_dim = fields.positive_int("global_head_dim", 512)
    global_kv = kv_head_count(fields)
    if keys_are_values and fields.has("num_global_key_value_heads"):
        global_kv = fields.positive_int("num_global_key_value_heads")
        heads = fields.positive_int("num_attention_heads")
        if heads % global_kv:
            raise fields.refuse("num_global_key_value_heads", f"{heads} heads must share them")
    per_layer = whole_number(fields, "hidden_size_per_layer_input", 256)
    doubles, has_experts = fields.flag("use_double_wide_mlp"), fields.flag("enable_moe_block")
    experts = None
    extra: tuple[Matrix, ...] = (Matrix("layer_scalar", "norms", 1, 1),)
    if has_experts:
        experts, matrices = _gemma4_experts(fields)
        extra += matrices
    understood(
        fields,
        "num_global_key_value_heads",
        "num_experts",
        "top_k_experts",
        "vocab_size_per_layer_input",
    )
    if per_layer:
        extra += _per_layer_input(hidden, per_layer)

    def layer(number: int) -> LayerSpec:
        is_local, shares = kinds[number] == SLIDING_ATTENTION, number in shared
        mlp = gated_mlp_matrices(hidden, width * (2 if doubles and shares else 1))
        return _attention_layer(
            fields,
            (*mlp, *extra),
            kv_heads=kv_head_count(fields) if is_local else global_kv,
            head_dim=head_size(fields) if is_local else global_dim,
            window=fields.positive_int("sliding_window", 512) if is_local else None,
            shares=shares,
            keys_are_values=keys_are_values and not is_local,
            experts=experts,
        )

    return assemble(
        fields,
        [layer(number) for number in range(len(kinds))],
        tied=True,
        embedding=_per_layer_embedding(fields, per_layer) if per_layer else (),
    )


def _gemma4_layer_types(fields: ConfigFields) -> tuple[str, ...]:
    """The last layer is global whatever the config says, as the model does it."""
    kinds = read_layer_types(
        fields, _KINDS, lambda i: SLIDING_ATTENTION if (i + 1) % 6 else FULL_ATTENTION
    )
    return (*kinds[:-1], FULL_ATTENTION)


def _gemma4_experts(fields: ConfigFields) -> tuple[Experts, tuple[Matrix, ...]]:
    hidden = fields.positive_int("hidden_size")
    experts = read_experts(fields, "num_experts", "top_k_experts", "moe_intermediate_size", 1)
    names = ("gate_up_proj", "gate_up_proj", "down_proj")
    return experts, (
        Matrix("router.proj", "router", experts.num_experts, hidden),
        Matrix("router.scale", "router", hidden, 1),
        Matrix("router.per_expert_scale", "router", experts.num_experts, 1),
        *expert_matrices(hidden, experts, "experts", names),
        *(
            norm(name, hidden)
            for name in (
                "post_feedforward_layernorm_1",
                "post_feedforward_layernorm_2",
                "pre_feedforward_layernorm_2",
            )
        ),
    )


def read_gemma3n(fields: ConfigFields) -> ModelSpec:
    """Gemma 3n: several streams of hidden states (AltUp) and a low-rank residual (LAuReL)."""
    hidden, streams = fields.positive_int("hidden_size"), layer_count(fields, "altup_num_inputs", 4)
    kinds = read_layer_types(
        fields, _KINDS, lambda i: SLIDING_ATTENTION if (i + 1) % 5 else FULL_ATTENTION
    )
    shared = _shared_layers(fields, kinds, 15)
    per_layer = fields.positive_int("hidden_size_per_layer_input", 256)
    widths = _gemma3n_widths(fields, len(kinds))
    rank = fields.positive_int("laurel_rank", 64)
    extra = (
        Matrix("altup.correct_output_scale", "AltUp", hidden, 1),
        Matrix("altup.correction_coefs", "AltUp", streams, streams),
        Matrix("altup.prediction_coefs", "AltUp", streams * streams, streams),
        Matrix("altup.modality_router", "AltUp", streams, hidden),
        norm("altup.router_norm", hidden),
        Matrix("laurel.linear_left", "MLP", rank, hidden, Split.COLUMN),
        Matrix("laurel.linear_right", "MLP", hidden, rank, Split.ROW),
        norm("laurel.post_laurel_norm", hidden),
        *_per_layer_input(hidden, per_layer),
    )

    def layer(number: int) -> LayerSpec:
        is_local = kinds[number] == SLIDING_ATTENTION
        return _attention_layer(
            fields,
            (*gated_mlp_matrices(hidden, widths[number]), *extra),
            kv_heads=kv_head_count(fields),
            head_dim=head_size(fields),
            window=fields.positive_int("sliding_window", 512) if is_local else None,
            shares=number in shared,
        )

    streams_in = tuple(
        Matrix(f"model.altup_projections.{i}", "AltUp", hidden, hidden, Split.COLUMN)
        for i in range(streams - 1)
    )
    streams_out = tuple(
        replace(matrix, name=matrix.name.replace("projections", "unembed_projections"))
        for matrix in streams_in
    )
    return assemble(
        fields,
        [layer(number) for number in range(len(kinds))],
        tied=True,
        embedding=(*_per_layer_embedding(fields, per_layer), *streams_in),
        final_norm=(norm("model.norm", hidden), *streams_out),
    )


def _gemma3n_widths(fields: ConfigFields, layers: int) -> tuple[int, ...]:
    value = fields.values.get("intermediate_size")
    if not isinstance(value, list | tuple):
        return (fields.positive_int("intermediate_size"),) * layers
    if len(value) != layers or not all(is_whole(width) and width > 0 for width in value):
        raise fields.refuse("intermediate_size", f"a positive number for each of {layers} layers")
    return tuple(value)


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        "gemma4_text": read_gemma4,
        "gemma4_unified_text": read_gemma4,
        "gemma3n_text": read_gemma3n,
    }
)
