"""Dense decoders from GPT-2 to Falcon: learned positions, ALiBi, MLPs without a gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from labkit.plan.attention_windows import Windows
from labkit.plan.config_fields import ConfigFields, is_whole
from labkit.plan.dense_decoder import Family, Flag, read_dense
from labkit.plan.family_assembly import stored_as
from labkit.plan.model import ModelSpec
from labkit.plan.size_fields import all_sizes_read
from labkit.plan.weights import Matrix, Split

_GPT_NAMES = {
    "hidden_size": ("n_embd", "hidden_size"),
    "num_hidden_layers": ("n_layer", "num_hidden_layers"),
    "num_attention_heads": ("n_head", "num_attention_heads"),
    "intermediate_size": ("n_inner", "intermediate_size"),
    "max_position_embeddings": ("n_positions", "max_position_embeddings"),
}
_GPT_NORMS = ("ln_1", "ln_2")

GPT2 = Family(
    qkv_bias=True,
    o_bias=True,
    mlp_bias=True,
    norm_bias=True,
    norms=_GPT_NORMS,
    gated=False,
    mlp_names=("mlp.c_fc", "mlp.c_proj"),
    tied=True,
    kv_heads="query",
    square_attention=True,
    names=_GPT_NAMES,
    intermediate_factor=4,
    positions="n_positions",
)
_GPTJ = replace(
    GPT2,
    qkv_bias=False,
    o_bias=False,
    head_bias=True,
    norms=("ln_1",),
    mlp_names=("mlp.fc_in", "mlp.fc_out"),
    tied=False,
    positions="",
)
_NEOX_BIAS = Flag("attention_bias", True)
_GPT_NEOX = Family(
    qkv_bias=_NEOX_BIAS,
    o_bias=_NEOX_BIAS,
    mlp_bias=True,
    norm_bias=True,
    gated=False,
    mlp_names=("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
    kv_heads="query",
    square_attention=True,
)
_BLOOM = replace(
    _GPT_NEOX,
    qkv_bias=True,
    o_bias=True,
    tied=True,
    names={
        "hidden_size": ("hidden_size", "n_embed"),
        "num_hidden_layers": ("n_layer", "num_hidden_layers"),
        "num_attention_heads": ("n_head", "num_attention_heads"),
        "max_position_embeddings": ("seq_length",),
        "intermediate_size": ("",),
    },
    intermediate_factor=4,
    embedding_norm=True,
)
_PERSIMMON = replace(
    _GPT_NEOX,
    qkv_bias=True,
    o_bias=True,
    qk_norm="head",
    qk_norm_flag=Flag("qk_layernorm", True),
    qk_norm_bias=True,
)
_MPT = Family(
    norms=("norm_1", "norm_2"),
    gated=False,
    mlp_names=("ffn.up_proj", "ffn.down_proj"),
    tied=True,
    kv_heads="query",
    square_attention=True,
    names={
        "hidden_size": ("d_model", "hidden_size"),
        "num_hidden_layers": ("n_layers", "num_hidden_layers"),
        "num_attention_heads": ("n_heads", "num_attention_heads"),
        "max_position_embeddings": ("max_seq_len",),
        "intermediate_size": ("",),
    },
    intermediate_factor=4,
)
_OPT_BIAS = Flag("enable_bias", True)
_OPT = Family(
    qkv_bias=_OPT_BIAS,
    o_bias=_OPT_BIAS,
    mlp_bias=_OPT_BIAS,
    norm_bias=True,
    norms=("self_attn_layer_norm", "final_layer_norm"),
    gated=False,
    mlp_names=("fc1", "fc2"),
    tied=True,
    kv_heads="query",
    square_attention=True,
    names={"intermediate_size": ("ffn_dim",)},
    positions="max_position_embeddings",
    position_offset=2,
)
_FALCON = Family(
    qkv_bias=Flag("bias"),
    o_bias=Flag("bias"),
    mlp_bias=Flag("bias"),
    norm_bias=True,
    gated=False,
    mlp_names=("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
    tied=True,
    kv_heads="query",
    square_attention=True,
    names={
        "hidden_size": ("hidden_size", "n_embed"),
        "num_hidden_layers": ("num_hidden_layers", "n_layer"),
        "num_attention_heads": ("num_attention_heads", "n_head"),
        "num_key_value_heads": ("num_kv_heads", "n_head_kv"),
        "intermediate_size": ("ffn_hidden_size",),
    },
    intermediate_factor=4,
)


def _read_gpt_bigcode(fields: ConfigFields) -> ModelSpec:
    kv_heads: int | str = 1 if fields.flag("multi_query", True) else "query"
    return read_dense(fields, replace(GPT2, kv_heads=kv_heads))


def _read_falcon(fields: ConfigFields) -> ModelSpec:
    """Its three shapes: one KV head and one norm, grouped heads and two, or as GPT-3."""
    is_new = fields.flag("new_decoder_architecture")
    for name in _FALCON.names["num_key_value_heads"]:
        fields.has(name)  # older files give query heads here, which means nothing
    parallel_norms = fields.positive_int("num_ln_in_parallel_attn", 2 if is_new else 1)
    family = _FALCON
    if not is_new and fields.flag("multi_query", True):
        family = replace(family, kv_heads=1)
    elif not is_new:
        family = replace(family, names={**family.names, "num_key_value_heads": ("",)})
    if parallel_norms not in (1, 2):
        raise fields.refuse("num_ln_in_parallel_attn", "1 or 2 norms")
    if is_new or fields.flag("parallel_attn", True):
        names = ("ln_attn", "ln_mlp") if parallel_norms == 2 else ("input_layernorm",)
        family = replace(family, norms=names)
    return read_dense(fields, family)


def _read_gpt_neo(fields: ConfigFields) -> ModelSpec:
    family = replace(
        GPT2,
        qkv_bias=False,
        windows=_local_layers,
        names={
            "num_hidden_layers": ("num_layers", "num_hidden_layers"),
            "num_attention_heads": ("num_heads", "num_attention_heads"),
        },
        positions="max_position_embeddings",
    )
    return read_dense(fields, family)


def _local_layers(fields: ConfigFields, num_layers: int) -> Windows:
    """GPT-Neo: `attention_types` is a list of a pattern and how often it comes."""
    types = fields.values.get("attention_types", [[["global", "local"], num_layers // 2]])
    why = "a list of [pattern of global and local, how often] is needed, one kind for each layer"
    kinds: list[object] = []
    for entry in types if isinstance(types, list | tuple) else [None]:
        if not (isinstance(entry, list | tuple) and len(entry) == 2 and is_whole(entry[1])):
            raise fields.refuse("attention_types", why)
        if not isinstance(entry[0], list | tuple) or entry[1] > num_layers:
            raise fields.refuse("attention_types", why)
        kinds += list(entry[0]) * entry[1]
    if len(kinds) != num_layers or not {"global", "local"}.issuperset(map(str, kinds)):
        raise fields.refuse("attention_types", why)
    if "local" not in kinds:
        return (None,) * num_layers
    window = fields.positive_int("window_size", 256)
    return tuple(window if kind == "local" else None for kind in kinds)


def _read_mpt(fields: ConfigFields) -> ModelSpec:
    attention = ConfigFields(fields.nested("attn_config"), "attn_config.")
    if attention.word("attn_type", "multihead_attention") != "multihead_attention":
        raise attention.refuse("attn_type", "multihead_attention can be sized")
    for name in ("qk_ln", "qk_gn", "kv_n_heads"):
        if attention.values.get(name):
            raise attention.refuse(name, "it changes sizes and is not implemented")
    if not attention.flag("alibi", True):
        raise attention.refuse("alibi", "only models with ALiBi positions can be sized")
    if not fields.flag("no_bias", True):
        raise fields.refuse("no_bias", "only models without biases can be sized")
    if fields.values.get("expansion_ratio", 4) != 4:
        raise fields.refuse("expansion_ratio", "an MLP of 4 times the hidden size can be sized")
    return read_dense(fields, _MPT)


def _read_opt(fields: ConfigFields) -> ModelSpec:
    affine = fields.flag("layer_norm_elementwise_affine", True)
    spec = read_dense(fields, replace(_OPT, norm_weights=affine))
    has_final_norm = fields.flag("do_layer_norm_before", True) and not fields.flag(
        "_remove_final_layer_norm"
    )
    head = spec.head if has_final_norm else tuple(m for m in spec.head if m.part != "norms")
    narrow = fields.positive_int("word_embed_proj_dim", spec.hidden_size)
    if narrow == spec.hidden_size:
        return replace(spec, head=head)
    inward = Matrix("model.project_in", "embedding", spec.hidden_size, narrow, Split.WHOLE)
    outward = Matrix("model.project_out", "LM head", narrow, spec.hidden_size, Split.WHOLE)
    inward, outward = stored_as((inward, outward), spec.dtype)
    words, *rest = spec.embedding
    return replace(
        spec,
        embedding=(replace(words, in_features=narrow), *rest, inward),
        head=(
            outward,
            *(replace(m, in_features=narrow) if m.part == "LM head" else m for m in head),
        ),
    )


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        "gpt2": partial(read_dense, family=GPT2),
        "gptj": partial(read_dense, family=_GPTJ),
        "codegen": partial(read_dense, family=_GPTJ),
        "gpt_neo": _read_gpt_neo,
        "gpt_neox": partial(read_dense, family=_GPT_NEOX),
        "gpt_bigcode": _read_gpt_bigcode,
        "falcon": _read_falcon,
        "bloom": partial(read_dense, family=_BLOOM),
        "mpt": _read_mpt,
        "opt": _read_opt,
        "persimmon": partial(read_dense, family=_PERSIMMON),
    }
)
"""By `model_type`."""
