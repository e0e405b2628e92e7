"""Readers of hybrids of attention and gated delta nets: Qwen3-Next, Qwen3.5, Kimi Linear."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    predicted_layers,
    whole_number,
)
from labkit.plan.latent_families import latent_layer
from labkit.plan.layer_shapes import gated_mlp_matrices, norm
from labkit.plan.model import Experts, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import (
    expert_matrices,
    read_experts,
    router,
    shared_expert_matrices,
)
from labkit.plan.qwen_moe_families import dense_layers, qwen_experts
from labkit.plan.recurrent_shapes import by_heads, from_heads, state
from labkit.plan.size_fields import all_sizes_read
from labkit.plan.weights import Matrix

LINEAR_ATTENTION = "linear_attention"
Block = tuple[tuple[Matrix, ...], Experts | None]


def gated_delta_net(fields: ConfigFields, block: Block, *, fused: bool) -> LayerSpec:
    """A layer whose value heads keep a matrix each; `fused` projections as Qwen3-Next has them."""
    hidden, kernel = (
        fields.positive_int("hidden_size"),
        fields.positive_int("linear_conv_kernel_dim", 4),
    )
    key_heads, value_heads = (
        fields.positive_int("linear_num_key_heads"),
        fields.positive_int("linear_num_value_heads"),
    )
    key_dim, value_dim = (
        fields.positive_int("linear_key_head_dim"),
        fields.positive_int("linear_value_head_dim"),
    )
    if value_heads % key_heads:
        raise fields.refuse("linear_num_value_heads", f"{key_heads} key heads must share them")
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    if fused:
        inputs: tuple[Matrix, ...] = (
            by_heads("linear_attn.in_proj_qkvz", channels + values, hidden, key_heads),
            by_heads("linear_attn.in_proj_ba", 2 * value_heads, hidden, key_heads),
        )
    else:
        inputs = (
            by_heads("linear_attn.in_proj_qkv", channels, hidden, key_heads),
            by_heads("linear_attn.in_proj_z", values, hidden, value_heads),
            by_heads("linear_attn.in_proj_b", value_heads, hidden, value_heads),
            by_heads("linear_attn.in_proj_a", value_heads, hidden, value_heads),
        )
    matrices, experts = block
    return LayerSpec(
        matrices=(
            norm("input_layernorm", hidden),
            *inputs,
            by_heads("linear_attn.conv1d", channels, kernel, key_heads),
            by_heads("linear_attn.dt_bias", value_heads, 1, value_heads),
            by_heads("linear_attn.A_log", value_heads, 1, value_heads),
            norm("linear_attn.norm", value_dim),
            from_heads("linear_attn.out_proj", hidden, values, value_heads),
            norm("post_attention_layernorm", hidden),
            *matrices,
        ),
        cache=state(
            fields, channels * (kernel - 1), value_heads * key_dim * value_dim, value_heads
        ),
        experts=experts,
    )


def read_qwen_hybrid(fields: ConfigFields) -> ModelSpec:
    """Qwen3-Next and Qwen3.5: every fourth layer attends, with a gate of its heads' outputs."""
    model_type = fields.word("model_type", "")
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    if not fields.flag("attn_output_gate", True):
        raise fields.refuse("attn_output_gate", "these layers are known with a gate only")
    is_dense = model_type == "qwen3_5_text"
    dense = frozenset(range(layer_count(fields))) if is_dense else dense_layers(fields)
    sparse = None if is_dense else qwen_experts(fields, shared=True)
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias, qk_norm="head", output_gate=True)
    interval = fields.positive_int("full_attention_interval", 4)
    kinds = read_layer_types(
        fields,
        (FULL_ATTENTION, LINEAR_ATTENTION),
        lambda i: LINEAR_ATTENTION if (i + 1) % interval else FULL_ATTENTION,
    )

    def block(is_dense_layer: bool) -> Block:
        if sparse is not None and not is_dense_layer:
            return sparse
        return gated_mlp_matrices(hidden, fields.positive_int("intermediate_size")), None

    def layer(kind: str, is_dense_layer: bool) -> LayerSpec:
        if kind == FULL_ATTENTION:
            return attention_layer(fields, attention, *block(is_dense_layer))
        return gated_delta_net(fields, block(is_dense_layer), fused=model_type == "qwen3_next")

    predicted, extra = _prediction(fields)
    return assemble(
        fields,
        [layer(kind, i in dense) for i, kind in enumerate(kinds)],
        mtp_layers=(layer(FULL_ATTENTION, is_dense),) * predicted,
        mtp_extra=extra,
    )


def _prediction(fields: ConfigFields) -> tuple[int, tuple[Matrix, ...]]:
    """Multi-token prediction: one projection and three norms for all its layers, and the model's
    own embedding and LM head unless the config gives it an embedding of its own."""
    hidden = fields.positive_int("hidden_size")
    layers = predicted_layers(fields, "mtp_num_hidden_layers", "num_nextn_predict_layers")
    if fields.flag("mtp_use_dedicated_embeddings"):
        raise fields.refuse("mtp_use_dedicated_embeddings", "known is the model's own embedding")
    if not layers:
        return 0, ()
    return layers, (
        Matrix("mtp.fc", "MTP", hidden, 2 * hidden),
        norm("mtp.pre_fc_norm_embedding", hidden),
        norm("mtp.pre_fc_norm_hidden", hidden),
        norm("mtp.norm", hidden),
    )


def read_kimi_linear(fields: ConfigFields) -> ModelSpec:
    """Kimi Linear: latent attention in some layers, delta attention with its own gates in most."""
    hidden, layers = fields.positive_int("hidden_size"), layer_count(fields)
    shared = whole_number(fields, first_of(fields, "num_shared_experts", "n_shared_experts"), 1)
    experts = read_experts(
        fields,
        first_of(fields, "num_experts", "num_local_experts", "n_routed_experts"),
        first_of(fields, "num_experts_per_token", "num_experts_per_tok"),
        "moe_intermediate_size",
        shared,
    )
    prefix = "block_sparse_moe"
    matrices = (
        *router(
            f"{prefix}.gate",
            experts.num_experts,
            hidden,
            correction=f"{prefix}.gate.e_score_correction_bias",
        ),
        *expert_matrices(hidden, experts, f"{prefix}.experts.0", ("w1", "w3", "w2")),
    )
    if shared:
        width = shared * experts.intermediate_size
        matrices += shared_expert_matrices(hidden, width, f"{prefix}.shared_experts")
    if fields.positive_int("moe_layer_freq", 1) != 1:
        raise fields.refuse("moe_layer_freq", "every layer after the dense ones has experts")
    first_dense = whole_number(fields, "first_k_dense_replace", 1)
    full = _full_attention_layers(fields, layers)

    def layer(number: int) -> LayerSpec:
        block: Block = (matrices, experts)
        if number < first_dense:
            mlp = gated_mlp_matrices(hidden, fields.positive_int("intermediate_size"))
            block = (mlp, None)
        if number in full:
            return latent_layer(fields, *block)
        return _kimi_delta_layer(fields, *block)

    return assemble(
        fields,
        [layer(number) for number in range(layers)],
        max_positions=fields.positive_int("model_max_length", 2048),
    )


def _full_attention_layers(fields: ConfigFields, layers: int) -> frozenset[int]:
    """From 0; `linear_attn_config` counts from 1."""
    inner = _linear_fields(fields)
    if fields.has("layer_types"):
        kinds = read_layer_types(fields, (FULL_ATTENTION, LINEAR_ATTENTION), lambda _: "")
        return frozenset(i for i, kind in enumerate(kinds) if kind == FULL_ATTENTION)
    full = layer_numbers(inner, "full_attn_layers")
    linear = layer_numbers(inner, "kda_layers")
    if full | linear != frozenset(range(1, layers + 1)) or full & linear:
        raise inner.refuse(
            "full_attn_layers", f"with kda_layers it must name each of {layers} once"
        )
    return frozenset(number - 1 for number in full)


def _linear_fields(fields: ConfigFields) -> ConfigFields:
    return ConfigFields(fields.nested("linear_attn_config"), f"{fields.prefix}linear_attn_config.")


def _kimi_delta_layer(
    fields: ConfigFields, block: tuple[Matrix, ...], experts: Experts | None
) -> LayerSpec:
    inner = _linear_fields(fields)
    hidden, heads = fields.positive_int("hidden_size"), inner.positive_int("num_heads")
    head_dim, kernel = inner.positive_int("head_dim"), inner.positive_int("short_conv_kernel_size")
    width = heads * head_dim
    prefix = "self_attn"
    return LayerSpec(
        matrices=(
            norm("input_layernorm", hidden),
            *(by_heads(f"{prefix}.{name}_proj", width, hidden, heads) for name in "qkv"),
            *(by_heads(f"{prefix}.{name}_conv1d", width, kernel, heads) for name in "qkv"),
            Matrix(f"{prefix}.f_a_proj", "recurrent", head_dim, hidden),
            by_heads(f"{prefix}.f_b_proj", width, head_dim, heads),
            by_heads(f"{prefix}.dt_bias", width, 1, heads),
            by_heads(f"{prefix}.A_log", heads, 1, heads),
            by_heads(f"{prefix}.b_proj", heads, hidden, heads),
            Matrix(f"{prefix}.g_a_proj", "recurrent", head_dim, hidden),
            by_heads(f"{prefix}.g_b_proj", width, head_dim, heads),
            norm(f"{prefix}.o_norm", head_dim),
            from_heads(f"{prefix}.o_proj", hidden, width, heads),
            norm("post_attention_layernorm", hidden),
            *block,
        ),
        cache=state(fields, 3 * width * (kernel - 1), heads * head_dim * head_dim, heads),
        experts=experts,
    )


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        "qwen3_next": read_qwen_hybrid,
        "qwen3_5_text": read_qwen_hybrid,
        "qwen3_5_moe_text": read_qwen_hybrid,
        "kimi_linear": read_kimi_linear,
    }
)
