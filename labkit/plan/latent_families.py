"""Readers of families with multi-head latent attention (MLA): DeepSeek and its relatives.

What is cached of a token is one latent of `kv_lora_rank` elements and one rotated key of
`qk_rope_head_dim`, for all heads together. Decode reads it with the up-projection absorbed into
the query and the output, so scores are of kv_lora_rank + qk_rope_head_dim and values of
kv_lora_rank; prefill may expand keys and values instead, with fewer operations a token looked at:
`score_dim` and `value_dim` say what decode does.

Multi-token prediction is counted as the checkpoint holds it: DeepSeek repeats the embedding and the
LM head there, so they are in `mtp_extra` again, though an engine shares them with the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import assemble, whole_number
from labkit.plan.layer_shapes import gated_mlp_matrices, norm
from labkit.plan.model import CacheKind, Experts, LayerCache, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import deepseek_experts, prediction_extra
from labkit.plan.weights import Matrix, Split


def latent_attention(fields: ConfigFields) -> tuple[Matrix, ...]:
    """The projections into latents, which every rank holds whole, and out of them, by heads."""
    hidden, heads = fields.positive_int("hidden_size"), fields.positive_int("num_attention_heads")
    latent, rope = fields.positive_int("kv_lora_rank"), fields.positive_int("qk_rope_head_dim")
    nope, value = fields.positive_int("qk_nope_head_dim"), fields.positive_int("v_head_dim")
    bias = fields.flag("attention_bias")
    query = heads * (nope + rope)

    def by_heads(name: str, out_features: int, in_features: int) -> Matrix:
        return Matrix(name, "attention", out_features, in_features, Split.COLUMN, heads=heads)

    if fields.has("q_lora_rank"):
        rank = fields.positive_int("q_lora_rank")
        queries: tuple[Matrix, ...] = (
            Matrix("self_attn.q_a_proj", "attention", rank, hidden, bias=bias),
            norm("self_attn.q_a_layernorm", rank),
            by_heads("self_attn.q_b_proj", query, rank),
        )
    else:
        queries = (by_heads("self_attn.q_proj", query, hidden),)
    return (
        *queries,
        Matrix("self_attn.kv_a_proj_with_mqa", "attention", latent + rope, hidden, bias=bias),
        norm("self_attn.kv_a_layernorm", latent),
        by_heads("self_attn.kv_b_proj", heads * (nope + value), latent),
        Matrix(
            "self_attn.o_proj",
            "attention",
            hidden,
            heads * value,
            Split.ROW,
            heads=heads,
            bias=bias,
        ),
    )


def latent_layer(
    fields: ConfigFields,
    mlp: tuple[Matrix, ...],
    experts: Experts | None,
    attention: tuple[Matrix, ...] | None = None,
    index_elements: int = 0,
) -> LayerSpec:
    """Norm, latent attention, norm, and the block it is given."""
    hidden = fields.positive_int("hidden_size")
    latent, rope = fields.positive_int("kv_lora_rank"), fields.positive_int("qk_rope_head_dim")
    return LayerSpec(
        matrices=(
            norm("input_layernorm", hidden),
            *(latent_attention(fields) if attention is None else attention),
            norm("post_attention_layernorm", hidden),
            *mlp,
        ),
        cache=LayerCache(CacheKind.LATENT, 1, latent + rope + index_elements),
        num_heads=fields.positive_int("num_attention_heads"),
        score_dim=latent + rope,
        value_dim=latent,
        experts=experts,
    )


def read_deepseek_v3(fields: ConfigFields) -> ModelSpec:
    hidden, layers = fields.positive_int("hidden_size"), fields.positive_int("num_hidden_layers")
    block, experts = deepseek_experts(fields, correction=True)
    sparse = latent_layer(fields, block, experts)
    first_dense = min(whole_number(fields, "first_k_dense_replace", 0), layers)
    dense = [
        latent_layer(
            fields, gated_mlp_matrices(hidden, fields.positive_int("intermediate_size")), None
        )
        for _ in range(first_dense)
    ]
    frequency = fields.positive_int("moe_layer_freq", 1)
    if frequency != 1:
        raise fields.refuse("moe_layer_freq", "every layer after the first dense ones has experts")
    mtp = whole_number(fields, "num_nextn_predict_layers", 0)
    return assemble(
        fields,
        [*dense, *(sparse for _ in range(layers - first_dense))],
        mtp_layers=(sparse,) * mtp,
        mtp_extra=prediction_extra(fields) * mtp,
    )


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = {
    "deepseek_v3": read_deepseek_v3,
    "kimi_k2": read_deepseek_v3,
}
