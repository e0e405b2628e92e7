"""Readers of families with grouped-query attention, some dense layers, and shared experts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.plan.attention_shapes import (
    FULL_ATTENTION,
    SLIDING_ATTENTION,
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
    same_everywhere,
    whole_number,
)
from labkit.plan.layer_shapes import gated_mlp_matrices, norm
from labkit.plan.model import Experts, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import (
    deepseek_experts,
    expert_matrices,
    prediction_extra,
    read_experts,
    refuse_more_than_there_are,
    router,
    shared_expert_matrices,
)
from labkit.plan.size_fields import all_sizes_read, understood
from labkit.plan.weights import Matrix


def read_glm4_moe(fields: ConfigFields) -> ModelSpec:
    """GLM-4.5 and 4.6, Solar Open, dots.llm1: DeepSeek's experts under grouped-query attention."""
    model_type = fields.word("model_type", "")
    hidden, layers = fields.positive_int("hidden_size"), layer_count(fields)
    bias, is_dots = fields.flag("attention_bias"), model_type == "dots1"
    attention = self_attention(
        fields,
        qkv_bias=bias,
        o_bias=bias and is_dots,
        qk_norm="head" if is_dots or fields.flag("use_qk_norm") else "none",
    )
    block, experts = deepseek_experts(fields, correction=True)
    first_dense = whole_number(fields, "first_k_dense_replace", 0 if is_dots else 1)
    kinds = _dots_layer_types(fields) if is_dots else (FULL_ATTENTION,) * layers

    def layer(number: int) -> LayerSpec:
        is_local = kinds[number] == SLIDING_ATTENTION
        window = fields.positive_int("sliding_window") if is_local else None
        if number >= first_dense:
            return attention_layer(fields, attention, block, experts, window=window)
        mlp = gated_mlp_matrices(hidden, fields.positive_int("intermediate_size"))
        return attention_layer(fields, attention, mlp, window=window)

    predicted = predicted_layers(fields, "num_nextn_predict_layers")
    return assemble(
        fields,
        [layer(number) for number in range(layers)],
        mtp_layers=(attention_layer(fields, attention, block, experts),) * predicted,
        mtp_extra=prediction_extra(fields) * predicted,
    )


def _dots_layer_types(fields: ConfigFields) -> tuple[str, ...]:
    layers = layer_count(fields)
    first = whole_number(fields, "max_window_layers", layers)
    slides = fields.has("sliding_window")
    return read_layer_types(
        fields,
        (FULL_ATTENTION, SLIDING_ATTENTION),
        lambda i: SLIDING_ATTENTION if slides and i >= first else FULL_ATTENTION,
    )


def read_ernie_moe(fields: ConfigFields) -> ModelSpec:
    """ERNIE 4.5: experts in a range of layers, at an interval."""
    hidden, layers = fields.positive_int("hidden_size"), layer_count(fields)
    bias, shared = fields.flag("use_bias"), whole_number(fields, "moe_num_shared_experts", 0)
    experts = read_experts(
        fields,
        first_of(fields, "moe_num_experts", "num_experts"),
        first_of(fields, "moe_k", "num_experts_per_tok"),
        "moe_intermediate_size",
        shared,
    )
    block = (
        *router(
            "mlp.gate",
            experts.num_experts,
            hidden,
            correction="mlp.moe_statics.e_score_correction_bias",
        ),
        *expert_matrices(hidden, experts, "mlp.experts.0"),
    )
    if shared:
        width = shared * experts.intermediate_size
        block += shared_expert_matrices(hidden, width, "mlp.shared_experts", bias=bias)
    start, interval = (
        whole_number(fields, "moe_layer_start_index", 1),
        fields.positive_int("moe_layer_interval", 1),
    )
    end = layers - 1
    if fields.has("moe_layer_end_index") and fields.values.get("moe_layer_end_index") != -1:
        end = whole_number(fields, "moe_layer_end_index")
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias)
    dense = attention_layer(
        fields,
        attention,
        gated_mlp_matrices(hidden, fields.positive_int("intermediate_size"), bias=bias),
    )
    sparse = attention_layer(fields, attention, block, experts)
    predicted = predicted_layers(fields, "num_nextn_predict_layers")
    extra = (
        norm("model.mtp_emb_norm.0", hidden),
        norm("model.mtp_hidden_norm.0", hidden),
        Matrix("model.mtp_linear_proj.0", "MTP", hidden, 2 * hidden, bias=bias),
    )
    return assemble(
        fields,
        [sparse if start <= i <= end and not (i + 1) % interval else dense for i in range(layers)],
        tied=True,
        head_bias=bias,
        mtp_layers=(dense,) * predicted,
        mtp_extra=extra * predicted,
    )


def read_hunyuan_moe(fields: ConfigFields) -> ModelSpec:
    """Hunyuan-A13B: every layer has experts and a shared one of the same width."""
    hidden, bias = fields.positive_int("hidden_size"), fields.flag("attention_bias")
    width = fields.positive_int("intermediate_size")
    if fields.has("moe_intermediate_size") and (
        same_everywhere(fields, "moe_intermediate_size") != width
    ):
        raise fields.refuse("moe_intermediate_size", f"it differs from intermediate_size {width}")
    if fields.has("num_shared_expert") and same_everywhere(fields, "num_shared_expert") != 1:
        raise fields.refuse("num_shared_expert", "one shared expert is known")
    if not fields.flag("use_qk_norm", True):
        raise fields.refuse("use_qk_norm", "Hunyuan MoE is known with norms of q and k only")
    top_k = first_of(fields, "moe_topk", "num_experts_per_tok")
    number = same_everywhere(fields, "num_experts")
    experts = Experts(number, same_everywhere(fields, top_k), width, 1)
    refuse_more_than_there_are(fields, top_k, experts)
    block = (
        *router("mlp.gate.wg", experts.num_experts, hidden),
        *expert_matrices(hidden, experts, "mlp.experts.0"),
        *shared_expert_matrices(hidden, width, "mlp.shared_mlp"),
    )
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias, qk_norm="head")
    layer = attention_layer(fields, attention, block, experts)
    return assemble(fields, (layer,) * layer_count(fields))


def read_llama4(fields: ConfigFields) -> ModelSpec:
    """Llama 4: experts in every n-th layer; layers with rotary positions attend inside chunks.

    A chunk is sized as a window of its length, which is the most it keeps.
    """
    hidden, layers = fields.positive_int("hidden_size"), layer_count(fields)
    bias = fields.flag("attention_bias")
    understood(fields, "use_qk_norm", "intermediate_size_mlp")
    experts = read_experts(
        fields, "num_local_experts", "num_experts_per_tok", "intermediate_size", 1
    )
    prefix = "feed_forward"
    names = ("gate_up_proj", "gate_up_proj", "down_proj")
    block = (
        *router(f"{prefix}.router", experts.num_experts, hidden),
        *expert_matrices(hidden, experts, f"{prefix}.experts", names),
        *shared_expert_matrices(hidden, experts.intermediate_size, f"{prefix}.shared_expert"),
    )
    step = fields.positive_int("interleave_moe_layer_step", 1)
    listed = layer_numbers(fields, "moe_layers")
    sparse = listed if fields.has("moe_layers") else frozenset(range(step - 1, layers, step))
    attention = self_attention(fields, qkv_bias=bias, o_bias=bias)
    kinds = _llama4_layer_types(fields, layers)

    def layer(number: int) -> LayerSpec:
        chunked = kinds[number] != FULL_ATTENTION
        window = fields.positive_int("attention_chunk_size") if chunked else None
        if number in sparse:
            return attention_layer(fields, attention, block, experts, window=window)
        width = fields.positive_int("intermediate_size_mlp")
        mlp = gated_mlp_matrices(hidden, width, prefix=prefix)
        return attention_layer(fields, attention, mlp, window=window)

    return assemble(fields, [layer(number) for number in range(layers)])


def _llama4_layer_types(fields: ConfigFields, layers: int) -> tuple[str, ...]:
    interval = fields.positive_int("no_rope_layer_interval", 4)
    rotary = fields.values.get("no_rope_layers") or [
        int((i + 1) % interval != 0) for i in range(layers)
    ]
    if not isinstance(rotary, list | tuple) or len(rotary) != layers:
        raise fields.refuse("no_rope_layers", f"a 0 or 1 for each of {layers} layers is needed")
    chunks = fields.has("attention_chunk_size")
    return read_layer_types(
        fields,
        (FULL_ATTENTION, "chunked_attention"),
        lambda i: "chunked_attention" if rotary[i] and chunks else FULL_ATTENTION,
    )


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        "glm4_moe": read_glm4_moe,
        "glm4v_moe_text": read_glm4_moe,
        "dots1": read_glm4_moe,
        "ernie4_5_moe": read_ernie_moe,
        "hunyuan_v1_moe": read_hunyuan_moe,
        "llama4_text": read_llama4,
    }
)
