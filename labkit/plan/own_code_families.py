"""Dense decoders that bring their own modelling code, so transformers does not have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from labkit.plan.attention_windows import upper_layers_slide
from labkit.plan.config_fields import ConfigFields
from labkit.plan.dense_decoder import (
    MOST_LAYERS,
    Family,
    Flag,
    assemble,
    attention_layer,
    read_dense,
    read_head_dim,
    says,
    size,
)
from labkit.plan.dense_families import LLAMA, QWEN2
from labkit.plan.family_assembly import read_dtype, stored_as
from labkit.plan.layer_shapes import attention_matrices, gated_mlp_matrices, norm
from labkit.plan.model import CacheKind, LayerCache, LayerSpec, ModelSpec
from labkit.plan.size_fields import all_sizes_read
from labkit.plan.weights import Matrix

_INTERNLM = Family(qkv_bias=Flag("bias", True), o_bias=Flag("bias", True), kv_heads="query")
_CHATGLM = Family(
    qkv_bias=True,
    o_bias=Flag("add_bias_linear"),
    mlp_bias=Flag("add_bias_linear"),
    kv_heads="query",
    names={
        "num_hidden_layers": ("num_layers", "num_hidden_layers"),
        "intermediate_size": ("ffn_hidden_size",),
        "head_dim": ("kv_channels",),
        "num_key_value_heads": ("multi_query_group_num",),
        "vocab_size": ("padded_vocab_size", "vocab_size"),
        "max_position_embeddings": ("seq_length",),
    },
)
_QWEN = Family(
    qkv_bias=True,
    kv_heads="query",
    intermediate_shares=2,
    names={"head_dim": ("kv_channels",), "num_key_value_heads": ("",)},
)


def _read_chatglm(fields: ConfigFields) -> ModelSpec:
    if not fields.flag("rmsnorm", True):
        raise fields.refuse("rmsnorm", "models with RMSNorm can be sized")
    if not fields.flag("post_layer_norm", True):
        raise fields.refuse("post_layer_norm", "models with a final norm can be sized")
    family = _CHATGLM
    if not (fields.flag("add_qkv_bias") or fields.flag("add_bias_linear")):
        family = replace(family, qkv_bias=False)
    if not fields.flag("multi_query_attention"):
        names = {**family.names, "num_key_value_heads": ("",)}
        family = replace(family, names=names)
    return read_dense(fields, family)


def _read_qwen(fields: ConfigFields) -> ModelSpec:
    if not fields.flag("no_bias", True):
        raise fields.refuse("no_bias", "models with biases of q, k and v only can be sized")
    return read_dense(fields, _QWEN)


def _read_mimo(fields: ConfigFields) -> ModelSpec:
    """Qwen2, and multi-token prediction layers with a projection and three norms of their own."""
    spec = read_dense(fields, replace(QWEN2, windows=upper_layers_slide))
    count = fields.values.get("num_nextn_predict_layers") or 0
    if not count:
        return spec
    count = fields.positive_int("num_nextn_predict_layers")
    if count > MOST_LAYERS:
        raise fields.refuse("num_nextn_predict_layers", f"at most {MOST_LAYERS} can be sized")
    hidden = spec.hidden_size
    extra = (
        Matrix("input_proj", "MTP", hidden, 2 * hidden),
        *(norm(f"{name}_layernorm", hidden) for name in ("token", "hidden", "final")),
    )
    return replace(
        spec,
        mtp_layers=(spec.layers[-1],) * count,
        mtp_extra=stored_as(extra, spec.dtype) * count,
    )


def _read_nemotron_nas(fields: ConfigFields) -> ModelSpec:
    """Llama after architecture search: `block_configs` says what is left of each layer."""
    hidden = size(fields, LLAMA, "hidden_size")
    blocks = fields.values.get("block_configs")
    count = size(fields, LLAMA, "num_hidden_layers", most=MOST_LAYERS)
    if not isinstance(blocks, list | tuple) or len(blocks) != count:
        raise fields.refuse("block_configs", f"{count} layers need as many blocks")
    known: dict[LayerSpec, LayerSpec] = {}
    layers = []
    for index, block in enumerate(blocks):
        if not isinstance(block, Mapping):
            raise fields.refuse("block_configs", f"block {index} is no JSON object")
        inner = ConfigFields(block, f"{fields.prefix}block_configs.{index}.")
        layer = _nas_layer(fields, inner, hidden)
        layers.append(known.setdefault(layer, layer))
    return assemble(fields, LLAMA, hidden, tuple(layers))


def _nas_layer(fields: ConfigFields, block: ConfigFields, hidden: int) -> LayerSpec:
    heads = size(fields, LLAMA, "num_attention_heads")
    head_dim = read_head_dim(fields, LLAMA, hidden, heads)
    attention = ConfigFields(block.nested("attention"), f"{block.prefix}attention.")
    mlp = ConfigFields(block.nested("ffn"), f"{block.prefix}ffn.")
    for part in (attention, mlp):
        for name in ("replace_with_linear", "sparsify", "window_length", "num_sink_tokens"):
            if part.values.get(name):
                raise part.refuse(name, "it changes sizes and is not implemented")
    matrices: tuple[Matrix, ...] = ()
    layer = LayerSpec((), LayerCache(CacheKind.NONE))
    if not attention.flag("no_op"):
        group = attention.positive_int("n_heads_in_group")
        if heads % group:
            raise attention.refuse("n_heads_in_group", f"{heads} attention heads in equal groups")
        bias = says(fields, LLAMA.qkv_bias)
        matrices += (
            norm("input_layernorm", hidden),
            *attention_matrices(
                hidden, heads, heads // group, head_dim, qkv_bias=bias, o_bias=bias
            ),
        )
        layer = attention_layer((), heads, heads // group, head_dim, None)
    if not mlp.flag("no_op"):
        width = _nas_width(mlp.number("ffn_mult"), hidden)
        matrices += (
            norm("post_attention_layernorm", hidden),
            *gated_mlp_matrices(hidden, width, bias=says(fields, LLAMA.mlp_bias)),
        )
    return replace(layer, matrices=stored_as(matrices, read_dtype(fields)))


def _nas_width(multiple: float, hidden: int) -> int:
    """Two thirds of so many hidden sizes, up to a multiple of 256."""
    return -(-int(2 * multiple * hidden / 3) // 256) * 256


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        "baichuan": partial(read_dense, family=Family(kv_heads="query")),
        "chatglm": _read_chatglm,
        "internlm": partial(read_dense, family=_INTERNLM),
        "internlm2": partial(read_dense, family=_INTERNLM),
        "mimo": _read_mimo,
        "minicpm": partial(read_dense, family=replace(LLAMA, tied=True)),
        "nemotron-nas": _read_nemotron_nas,
        "qwen": _read_qwen,
    }
)
"""By `model_type`."""
