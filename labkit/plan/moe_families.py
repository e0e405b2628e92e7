"""Readers of mixture-of-experts families: grouped-query attention, and routed experts alone.

What makers publish as active parameters differs in what it counts:

- with the embedding (`num_active_parameters`): Mixtral 12.9B and 39B, Qwen3 22B and 3.3B, OLMoE
  1.3B, Phi-3.5-MoE 6.6B, DBRX 36B, dots.llm1 14B, Llama 4 17B, Qwen3.5 17B;
- without an embedding that is only looked up (`num_active_parameters_without_embedding`):
  DeepSeek-V3 37B, gpt-oss 5.1B and 3.6B, LongCat-Flash 27B, Nemotron 3 Nano 3.2B;
- without the LM head either: MiniMax-M1 45.9B, GLM-4.5 32B and 12B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from labkit.plan import qwen_moe_families, shared_expert_families, sliding_moe_families
from labkit.plan.attention_shapes import (
    FULL_ATTENTION,
    SLIDING_ATTENTION,
    attention_cache,
    attention_layer,
    read_layer_types,
    self_attention,
    window_of_all,
)
from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import assemble, first_of, layer_count
from labkit.plan.layer_shapes import attention_matrices, norm
from labkit.plan.model import LayerSpec, ModelSpec
from labkit.plan.moe_shapes import expert_matrices, read_experts, router, shared_expert_matrices
from labkit.plan.size_fields import all_sizes_read


def read_mixtral(fields: ConfigFields) -> ModelSpec:
    hidden = fields.positive_int("hidden_size")
    experts = read_experts(fields, "num_local_experts", "num_experts_per_tok", "intermediate_size")
    prefix = "block_sparse_moe"
    block = (
        *router(f"{prefix}.gate", experts.num_experts, hidden),
        *expert_matrices(hidden, experts, f"{prefix}.experts.0", ("w1", "w3", "w2")),
    )
    window = window_of_all(fields)
    layer = attention_layer(fields, self_attention(fields), block, experts, window=window)
    return assemble(fields, (layer,) * layer_count(fields))


def read_phimoe(fields: ConfigFields) -> ModelSpec:
    """Phi-3.5-MoE: norms have biases, and so may attention and the LM head."""
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    experts = read_experts(fields, "num_local_experts", "num_experts_per_tok", "intermediate_size")
    prefix = "block_sparse_moe"
    block = (
        *router(f"{prefix}.gate", experts.num_experts, hidden),
        *expert_matrices(hidden, experts, f"{prefix}.experts.0", ("w1", "w3", "w2")),
    )
    layer = attention_layer(
        fields,
        self_attention(fields, qkv_bias=bias, o_bias=bias),
        block,
        experts,
        window=window_of_all(fields),
        norm_bias=True,
    )
    return assemble(
        fields,
        (layer,) * layer_count(fields),
        final_norm=(norm("model.norm", hidden, bias=True),),
        head_bias=fields.flag("lm_head_bias"),
    )


def read_olmoe(fields: ConfigFields) -> ModelSpec:
    """OLMoE: norms over all heads of q and of k."""
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    experts = read_experts(
        fields,
        first_of(fields, "num_experts", "num_local_experts"),
        "num_experts_per_tok",
        "intermediate_size",
    )
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias, qk_norm="width")
    block = (
        *router("mlp.gate", experts.num_experts, hidden),
        *expert_matrices(hidden, experts, "mlp.experts.0"),
    )
    layer = attention_layer(fields, attention, block, experts)
    return assemble(fields, (layer,) * layer_count(fields))


def read_granite_moe(fields: ConfigFields) -> ModelSpec:
    """Granite 3 MoE, and its variant with a shared MLP beside the experts."""
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    experts = read_experts(fields, "num_local_experts", "num_experts_per_tok", "intermediate_size")
    prefix = "block_sparse_moe"
    names = ("input_linear", "input_linear", "output_linear")
    block = (
        *router(f"{prefix}.router.layer", experts.num_experts, hidden),
        *expert_matrices(hidden, experts, prefix, names),
    )
    if fields.values.get("shared_intermediate_size"):
        width = fields.positive_int("shared_intermediate_size")
        block += shared_expert_matrices(hidden, width, "shared_mlp")
        experts = replace(experts, num_shared_experts=1)
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias)
    layer = attention_layer(fields, attention, block, experts)
    return assemble(fields, (layer,) * layer_count(fields))


def read_gpt_oss(fields: ConfigFields) -> ModelSpec:
    """gpt-oss: biases in all but the norms, a sink for each head, every other layer local."""
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias", True)
    experts = read_experts(
        fields,
        first_of(fields, "num_local_experts", "num_experts"),
        first_of(fields, "num_experts_per_tok", "experts_per_token"),
        "intermediate_size",
    )
    names = ("gate_up_proj", "gate_up_proj", "down_proj")
    block = (
        *router("mlp.router", experts.num_experts, hidden, bias=True),
        *expert_matrices(hidden, experts, "mlp.experts", names, bias=True),
    )
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias, sinks=True)
    kinds = read_layer_types(
        fields,
        (FULL_ATTENTION, SLIDING_ATTENTION),
        lambda i: FULL_ATTENTION if i % 2 else SLIDING_ATTENTION,
    )

    def layer(kind: str) -> LayerSpec:
        window = fields.positive_int("sliding_window") if kind == SLIDING_ATTENTION else None
        return attention_layer(fields, attention, block, experts, window=window)

    return assemble(fields, [layer(kind) for kind in kinds])


def read_minimax_m2(fields: ConfigFields) -> ModelSpec:
    """MiniMax-M2: norms over all heads of q and k. Its config names prediction modules that the
    checkpoint does not hold."""
    hidden = fields.positive_int("hidden_size")
    if not fields.flag("use_qk_norm", True):
        raise fields.refuse("use_qk_norm", "MiniMax-M2 is known with norms of q and k only")
    experts = read_experts(fields, "num_local_experts", "num_experts_per_tok", "intermediate_size")
    prefix = "block_sparse_moe"
    block = (
        *router(
            f"{prefix}.gate",
            experts.num_experts,
            hidden,
            correction=f"{prefix}.e_score_correction_bias",
        ),
        *expert_matrices(hidden, experts, f"{prefix}.experts.0", ("w1", "w3", "w2")),
    )
    if any(kind != 1 for kind in fields.sequence("attn_type_list")):
        raise fields.refuse("attn_type_list", "every layer of MiniMax-M2 has softmax attention (1)")
    layer = attention_layer(fields, self_attention(fields, qk_norm="width"), block, experts)
    notes = ("multi-token prediction is not in the checkpoint",) if fields.has("use_mtp") else ()
    return assemble(fields, (layer,) * layer_count(fields), notes=notes)


def read_dbrx(fields: ConfigFields) -> ModelSpec:
    hidden, heads = fields.positive_int("d_model"), fields.positive_int("n_heads")
    inner = ConfigFields(fields.nested("attn_config"), f"{fields.prefix}attn_config.")
    block_fields = ConfigFields(fields.nested("ffn_config"), f"{fields.prefix}ffn_config.")
    kv_heads = inner.positive_int("kv_n_heads")
    if hidden % heads:
        raise fields.refuse("d_model", f"it does not divide by {heads} heads")
    if heads % kv_heads:
        raise inner.refuse("kv_n_heads", f"{heads} attention heads must share them")
    head_dim = hidden // heads
    experts = read_experts(block_fields, "moe_num_experts", "moe_top_k", "ffn_hidden_size")
    layer = LayerSpec(
        matrices=(
            norm("norm_attn_norm.norm_1", hidden),
            *attention_matrices(hidden, heads, kv_heads, head_dim),
            norm("norm_attn_norm.norm_2", hidden),
            *router("ffn.router.layer", experts.num_experts, hidden),
            *expert_matrices(hidden, experts, "ffn.experts.mlp", ("w1", "v1", "w2")),
        ),
        cache=attention_cache(kv_heads, head_dim),
        num_heads=heads,
        score_dim=head_dim,
        value_dim=head_dim,
        experts=experts,
    )
    return assemble(
        fields,
        (layer,) * layer_count(fields, "n_layers"),
        hidden_size=hidden,
        max_positions=fields.positive_int("max_seq_len", 2048),
    )


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = {
    **all_sizes_read(
        {
            "mixtral": read_mixtral,
            "phimoe": read_phimoe,
            "olmoe": read_olmoe,
            "granitemoe": read_granite_moe,
            "granitemoeshared": read_granite_moe,
            "gpt_oss": read_gpt_oss,
            "minimax_m2": read_minimax_m2,
            "dbrx": read_dbrx,
        }
    ),
    **qwen_moe_families.READERS,
    **shared_expert_families.READERS,
    **sliding_moe_families.READERS,
}
