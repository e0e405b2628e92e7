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

from labkit.plan.attention_shapes import read_layer_types
from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import (
    assemble,
    first_of,
    layer_count,
    predicted_layers,
    whole_number,
)
from labkit.plan.layer_shapes import gated_mlp_matrices, norm
from labkit.plan.model import CacheKind, Experts, LayerCache, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import deepseek_experts, expert_matrices, prediction_extra, router
from labkit.plan.size_fields import all_sizes_read
from labkit.plan.weights import Matrix, Split

SPARSE_TYPES = ("deepseek_v32", "glm_moe_dsa")
SPARSE_ATTENTION = ("indexed_attention", "deepseek_sparse_attention")


def latent_attention(fields: ConfigFields) -> tuple[Matrix, ...]:
    """The projections into latents, which every rank holds whole, and out of them, by heads."""
    hidden, heads = fields.positive_int("hidden_size"), fields.positive_int("num_attention_heads")
    latent, rope = fields.positive_int("kv_lora_rank"), fields.positive_int("qk_rope_head_dim")
    nope, value = fields.positive_int("qk_nope_head_dim"), fields.positive_int("v_head_dim")
    bias = fields.flag("attention_bias")
    if not fields.flag("use_mla", True):
        raise fields.refuse("use_mla", "attention of this family is known as latent attention only")
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


def read_deepseek(fields: ConfigFields) -> ModelSpec:
    """DeepSeek V2, V3, V3.2, Kimi K2, GLM-4.7-Flash, GLM-5: dense layers, then experts."""
    model_type = fields.word("model_type", "")
    block, experts = deepseek_experts(fields, correction=model_type != "deepseek_v2")
    dense_mlp = () if not _has_dense(fields) else _dense_mlp(fields)
    has_indexer = fields.has("index_head_dim") or model_type in SPARSE_TYPES
    indexed = _indexed_layers(fields) if has_indexer else frozenset()

    def layer(number: int, is_dense: bool) -> LayerSpec:
        attention = latent_attention(fields)
        elements = 0
        if number in indexed:
            attention += indexer(fields)
            elements = fields.positive_int("index_head_dim")
        used, used_experts = (dense_mlp, None) if is_dense else (block, experts)
        return latent_layer(fields, used, used_experts, attention, elements)

    read_layer_types(fields, ("full_attention", *SPARSE_ATTENTION), lambda _: "")
    dense = _dense_layers(fields)
    predicted = predicted_layers(fields, "num_nextn_predict_layers")
    notes: tuple[str, ...] = ()
    if has_indexer:
        top = fields.positive_int("index_topk", 2048)
        notes = (
            f"attention looks at {top} tokens at most, which an indexer picks: times and "
            "operations are sized as if it looked at all; its keys are counted in the "
            "cache's own precision",
        )
    return assemble(
        fields,
        [layer(number, number in dense) for number in range(layer_count(fields))],
        mtp_layers=(layer(min(indexed, default=0), False),) * predicted,
        mtp_extra=prediction_extra(fields) * predicted,
        notes=notes,
    )


def _dense_mlp(fields: ConfigFields) -> tuple[Matrix, ...]:
    return gated_mlp_matrices(
        fields.positive_int("hidden_size"), fields.positive_int("intermediate_size")
    )


def _has_dense(fields: ConfigFields) -> bool:
    return bool(_dense_layers(fields))


def _dense_layers(fields: ConfigFields) -> frozenset[int]:
    """Layers without experts: the first ones, or those that `mlp_layer_types` calls dense."""
    layers = layer_count(fields)
    if fields.positive_int("moe_layer_freq", 1) != 1:
        raise fields.refuse("moe_layer_freq", "every layer after the first dense ones has experts")
    default = 1 if fields.word("model_type", "") == "glm4_moe_lite" else 0
    first = whole_number(fields, "first_k_dense_replace", default)
    kinds = read_layer_types(
        fields,
        ("dense", "sparse"),
        lambda i: "dense" if i < first else "sparse",
        "mlp_layer_types",
    )
    return frozenset(i for i in range(layers) if kinds[i] == "dense")


def indexer(fields: ConfigFields) -> tuple[Matrix, ...]:
    """What picks the tokens that sparse attention looks at; every rank holds it whole."""
    hidden, rank = fields.positive_int("hidden_size"), fields.positive_int("q_lora_rank")
    heads, head_dim = fields.positive_int("index_n_heads"), fields.positive_int("index_head_dim")
    return (
        Matrix("self_attn.indexer.wq_b", "indexer", heads * head_dim, rank),
        Matrix("self_attn.indexer.wk", "indexer", head_dim, hidden),
        norm("self_attn.indexer.k_norm", head_dim, bias=True),
        Matrix("self_attn.indexer.weights_proj", "indexer", heads, hidden),
    )


def _indexed_layers(fields: ConfigFields) -> frozenset[int]:
    """Layers with an indexer of their own; the others use the choice of the one before."""
    layers = layer_count(fields)
    if fields.has("indexer_types"):
        kinds = read_layer_types(fields, ("full", "shared"), lambda _: "", "indexer_types")
        return frozenset(i for i in range(layers) if kinds[i] == "full")
    if fields.has("index_topk_pattern"):
        given = fields.values["index_topk_pattern"]
        pattern = tuple(given) if isinstance(given, str) else fields.words("index_topk_pattern")
        if len(pattern) != layers or not {"F", "S", "full", "shared"}.issuperset(pattern):
            raise fields.refuse("index_topk_pattern", f"F or S for each of {layers} layers")
        return frozenset(i for i in range(layers) if pattern[i] in ("F", "full"))
    every = fields.positive_int("index_topk_freq", 1)
    offset = whole_number(fields, "index_skip_topk_offset", 2)
    return frozenset(i for i in range(layers) if not max(i - offset + 1, 0) % every)


def read_longcat(fields: ConfigFields) -> ModelSpec:
    """LongCat-Flash: two attentions and two dense MLPs a layer, beside them experts.

    Some experts do nothing: a token chooses among all, so on average it uses as many real ones as
    their share says, and that is what counts as active.
    """
    hidden, layers = fields.positive_int("hidden_size"), layer_count(fields, "num_layers")
    real, idle = (
        fields.positive_int("n_routed_experts"),
        whole_number(fields, "zero_expert_num", 0),
    )
    top_k = first_of(fields, "moe_topk", "num_experts_per_tok")
    chosen = fields.positive_int(top_k)
    width = fields.positive_int(first_of(fields, "expert_ffn_hidden_size", "moe_intermediate_size"))
    dense = fields.positive_int(first_of(fields, "ffn_hidden_size", "intermediate_size"))
    if chosen > real + idle:
        raise fields.refuse(top_k, f"a token cannot use more than the {real + idle} there")
    experts = Experts(real, max(1, round(chosen * real / (real + idle))), width)
    half = (
        norm("input_layernorm", hidden),
        *latent_attention(fields),
        norm("post_attention_layernorm", hidden),
        *gated_mlp_matrices(hidden, dense, prefix="mlps"),
    )
    block = (
        *router(
            "mlp.router.classifier",
            real + idle,
            hidden,
            bias=fields.flag("router_bias"),
            correction="mlp.router.e_score_correction_bias",
        ),
        *expert_matrices(hidden, experts, "mlp.experts.0"),
    )
    latent, rope = fields.positive_int("kv_lora_rank"), fields.positive_int("qk_rope_head_dim")
    layer = LayerSpec(
        matrices=(*half, *half, *block),
        cache=LayerCache(CacheKind.LATENT, 1, 2 * (latent + rope)),
        num_heads=fields.positive_int("num_attention_heads"),
        score_dim=2 * (latent + rope),
        value_dim=2 * latent,
        experts=experts,
    )
    notes = (
        f"a token chooses {chosen} of {real} experts and {idle} that do nothing: "
        f"{experts.top_k} real ones on average",
        "multi-token prediction is not counted: the config does not describe it",
    )
    return assemble(fields, (layer,) * layers, notes=notes)


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        "deepseek_v2": read_deepseek,
        "deepseek_v3": read_deepseek,
        "kimi_k2": read_deepseek,
        "deepseek_v32": read_deepseek,
        "glm4_moe_lite": read_deepseek,
        "glm_moe_dsa": read_deepseek,
        "longcat_flash": read_longcat,
    }
)
