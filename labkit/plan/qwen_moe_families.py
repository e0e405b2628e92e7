"""Readers of Qwen2-MoE and Qwen3-MoE, and what their hybrids share with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from labkit.plan.attention_shapes import attention_layer, self_attention, window_of_all
from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import assemble, first_of, layer_count, layer_numbers
from labkit.plan.layer_shapes import gated_mlp_matrices
from labkit.plan.model import Experts, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import expert_matrices, read_experts, router, shared_expert_matrices
from labkit.plan.size_fields import all_sizes_read
from labkit.plan.weights import Matrix


def qwen_experts(fields: ConfigFields, *, shared: bool) -> tuple[tuple[Matrix, ...], Experts]:
    """Router and routed experts, and a shared expert whose output a gate weighs."""
    hidden = fields.positive_int("hidden_size")
    experts = read_experts(
        fields,
        first_of(fields, "num_experts", "num_local_experts"),
        "num_experts_per_tok",
        "moe_intermediate_size",
    )
    block = (
        *router("mlp.gate", experts.num_experts, hidden),
        *expert_matrices(hidden, experts, "mlp.experts.0"),
    )
    if not shared:
        return block, experts
    width = fields.positive_int("shared_expert_intermediate_size")
    shared_expert = shared_expert_matrices(
        hidden, width, "mlp.shared_expert", gate="mlp.shared_expert_gate"
    )
    return (*block, *shared_expert), replace(experts, num_shared_experts=1)


def dense_layers(fields: ConfigFields) -> frozenset[int]:
    """Layers without experts: those listed, and all but each `decoder_sparse_step`-th."""
    listed = layer_numbers(fields, "mlp_only_layers")
    step = fields.positive_int("decoder_sparse_step", 1)
    layers = range(layer_count(fields))
    return frozenset(layer for layer in layers if layer in listed or (layer + 1) % step)


def read_qwen_moe(fields: ConfigFields) -> ModelSpec:
    """Qwen2-MoE (biases of q, k and v; a shared expert) and Qwen3-MoE (norms of q and k)."""
    is_qwen2 = fields.word("model_type", "") == "qwen2_moe"
    hidden, layers = fields.positive_int("hidden_size"), layer_count(fields)
    bias = fields.flag("qkv_bias", True) if is_qwen2 else fields.flag("attention_bias")
    if not is_qwen2 and not fields.flag("use_qk_norm", True):
        raise fields.refuse("use_qk_norm", "Qwen3-MoE is known with norms of q and k only")
    window = None
    if fields.flag("use_sliding_window"):
        if is_qwen2:
            raise fields.refuse("use_sliding_window", "which layers slide is not certain")
        window = window_of_all(fields)
    attention = self_attention(
        fields, qkv_bias=bias, o_bias=bias and not is_qwen2, qk_norm="none" if is_qwen2 else "head"
    )
    block, experts = qwen_experts(fields, shared=is_qwen2)
    dense = dense_layers(fields)

    def layer(number: int) -> LayerSpec:
        if number not in dense:
            return attention_layer(fields, attention, block, experts, window=window)
        mlp = gated_mlp_matrices(hidden, fields.positive_int("intermediate_size"))
        return attention_layer(fields, attention, mlp, window=window)

    return assemble(fields, [layer(number) for number in range(layers)])


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        "qwen2_moe": read_qwen_moe,
        "qwen3_moe": read_qwen_moe,
        "qwen3_vl_moe_text": read_qwen_moe,
        "qwen3_omni_moe_text": read_qwen_moe,
    }
)
