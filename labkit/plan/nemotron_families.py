"""Reader of Nemotron-H and Nemotron 3: each layer is one thing, Mamba-2, attention, MLP or experts.

So a layer here is half of another family's, and only those that attend keep a growing cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.plan.attention_shapes import (
    FULL_ATTENTION,
    attention_cache,
    head_size,
    kv_head_count,
    self_attention,
)
from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import (
    assemble,
    first_of,
    layer_count,
    predicted_layers,
    whole_number,
)
from labkit.plan.layer_shapes import norm, plain_mlp_matrices
from labkit.plan.mamba_mixers import mamba2_mixer
from labkit.plan.model import CacheKind, Experts, LayerCache, LayerSpec, ModelSpec
from labkit.plan.moe_shapes import read_experts, router
from labkit.plan.size_fields import all_sizes_read, understood
from labkit.plan.weights import Matrix, Split

_MARKS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_WORDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    FULL_ATTENTION: "attention",
    "mlp": "mlp",
    "moe": "moe",
}
_NAMES = {
    "heads": "mamba_num_heads",
    "head_dim": "mamba_head_dim",
    "groups": "n_groups",
    "state": "ssm_state_size",
    "kernel": "conv_kernel",
    "conv_bias": "use_conv_bias",
    "prefix": "mixer",
}


def read_nemotron_h(fields: ConfigFields) -> ModelSpec:
    kinds = _kinds(fields, "hybrid_override_pattern", ("layers_block_type", "layer_types"))
    if fields.has("num_hidden_layers") and layer_count(fields) != len(kinds):
        raise fields.refuse("num_hidden_layers", f"the pattern has {len(kinds)} layers")
    layers = {kind: _layer(fields, kind) for kind in dict.fromkeys(kinds)}
    predicted = predicted_layers(fields, "num_nextn_predict_layers")
    mtp: tuple[str, ...] = ()
    if predicted:
        mtp = _kinds(fields, "mtp_hybrid_override_pattern", ("mtp_layers_block_type",))
    hidden = fields.positive_int("hidden_size")
    extra = (
        norm("enorm", hidden),
        norm("hnorm", hidden),
        Matrix("eh_proj", "MTP", hidden, 2 * hidden),
        norm("final_layernorm", hidden),
    )
    understood(fields, "n_routed_experts", "n_shared_experts", "moe_intermediate_size")
    understood(fields, "moe_shared_expert_intermediate_size", "moe_latent_size", "mlp_bias")
    understood(fields, "mamba_num_heads", "mamba_head_dim")
    return assemble(
        fields,
        [layers[kind] for kind in kinds],
        mtp_layers=tuple(layers.get(kind) or _layer(fields, kind) for kind in mtp) * predicted,
        mtp_extra=extra * predicted,
    )


def _kinds(fields: ConfigFields, pattern: str, lists: tuple[str, ...]) -> tuple[str, ...]:
    """What each layer is, from a pattern such as "M-M*E", or from a list of words."""
    listed = next((field for field in lists if fields.has(field)), None)
    if listed is not None:
        words = fields.words(listed)
        for word in words:
            if word not in _WORDS:
                raise fields.refuse(listed, f"{word!r} is not known; known are {', '.join(_WORDS)}")
        return tuple(_WORDS[word] for word in words)
    marks = fields.word(pattern, "")
    if not marks or set(marks) - set(_MARKS):
        raise fields.refuse(pattern, f"one of {' '.join(_MARKS)} for each layer is needed")
    return tuple(_MARKS[mark] for mark in marks)


def _layer(fields: ConfigFields, kind: str) -> LayerSpec:
    hidden, first = (
        fields.positive_int("hidden_size"),
        norm("norm", fields.positive_int("hidden_size")),
    )
    if kind == "mamba":
        inner = fields.positive_int("mamba_num_heads") * fields.positive_int("mamba_head_dim")
        matrices, cache = mamba2_mixer(fields, _NAMES, inner, bias=fields.flag("use_bias"))
        return LayerSpec((first, *matrices), cache)
    if kind == "attention":
        bias, head_dim = fields.flag("attention_bias"), head_size(fields)
        return LayerSpec(
            (first, *self_attention(fields, qkv_bias=bias, o_bias=bias)),
            attention_cache(kv_head_count(fields), head_dim),
            num_heads=fields.positive_int("num_attention_heads"),
            score_dim=head_dim,
            value_dim=head_dim,
        )
    nothing = LayerCache(CacheKind.NONE)
    bias = fields.flag("mlp_bias")
    names = ("mixer.up_proj", "mixer.down_proj")
    if kind == "mlp":
        width = fields.positive_int("intermediate_size")
        return LayerSpec(
            (first, *plain_mlp_matrices(hidden, width, bias=bias, names=names)), nothing
        )
    experts = read_experts(
        fields,
        first_of(fields, "n_routed_experts", "num_local_experts"),
        "num_experts_per_tok",
        "moe_intermediate_size",
        whole_number(fields, "n_shared_experts", 1),
    )
    return LayerSpec((first, *_expert_block(fields, experts, bias)), nothing, experts=experts)


def _expert_block(fields: ConfigFields, experts: Experts, bias: bool) -> tuple[Matrix, ...]:
    """Experts without a gate; with `moe_latent_size` they work on a narrower hidden state."""
    hidden = fields.positive_int("hidden_size")
    inner = fields.positive_int("moe_latent_size", hidden)
    width = experts.intermediate_size

    def expert(name: str, out_features: int, in_features: int, split: Split) -> Matrix:
        return Matrix(
            f"mixer.experts.0.{name}",
            "experts",
            out_features,
            in_features,
            split,
            copies=experts.num_experts,
            active=experts.top_k,
        )

    shared = fields.positive_int("moe_shared_expert_intermediate_size")
    narrowing: tuple[Matrix, ...] = ()
    if fields.has("moe_latent_size"):
        narrowing = (
            Matrix("mixer.fc1_latent_proj", "experts' input", inner, hidden, bias=bias),
            Matrix("mixer.fc2_latent_proj", "experts' input", hidden, inner, bias=bias),
        )
    return (
        *router(
            "mixer.gate",
            experts.num_experts,
            hidden,
            correction="mixer.gate.e_score_correction_bias",
        ),
        expert("up_proj", width, inner, Split.COLUMN),
        expert("down_proj", inner, width, Split.ROW),
        Matrix(
            "mixer.shared_experts.up_proj",
            "shared experts",
            shared,
            hidden,
            Split.COLUMN,
            bias=bias,
        ),
        Matrix(
            "mixer.shared_experts.down_proj", "shared experts", hidden, shared, Split.ROW, bias=bias
        ),
        *narrowing,
    )


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {"nemotron_h": read_nemotron_h}
)
