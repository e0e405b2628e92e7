"""State-space mixers, Mamba and Mamba-2, from the fields a family names them by."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.plan.config_fields import ConfigFields
from labkit.plan.layer_shapes import norm
from labkit.plan.model import Experts, LayerCache, LayerSpec
from labkit.plan.recurrent_shapes import mamba1_matrices, mamba2_matrices, mamba2_state, state
from labkit.plan.weights import Matrix

Mixer = tuple[tuple[Matrix, ...], LayerCache]
"""The matrices, and what a sequence keeps."""


def mamba_layer(
    hidden: int, mixer: Mixer, block: tuple[Matrix, ...], experts: Experts | None = None
) -> LayerSpec:
    """Norm, state-space mixer, and with a block another norm and the block."""
    matrices, cache = mixer
    second = (norm("pre_ff_layernorm", hidden), *block) if block else ()
    return LayerSpec((norm("input_layernorm", hidden), *matrices, *second), cache, experts=experts)


def mamba1_mixer(fields: ConfigFields, names: Mapping[str, str], *, norms: bool) -> Mixer:
    """Mamba, with what the config calls its parts; a rank of "auto" is the hidden size by 16."""
    hidden = fields.positive_int("hidden_size")
    inner = fields.positive_int(names["expand"], 2) * hidden
    state_size = fields.positive_int(names["state"], 16)
    kernel = fields.positive_int(names["kernel"], 4)
    is_auto = fields.values.get(names["rank"], "auto") == "auto"
    rank = -(-hidden // 16) if is_auto else fields.positive_int(names["rank"])
    matrices = mamba1_matrices(
        hidden,
        inner,
        state_size,
        rank,
        kernel,
        names["prefix"],
        bias=fields.flag(names["bias"]),
        conv_bias=fields.flag(names["conv_bias"], True),
        norms=norms,
    )
    return matrices, state(fields, inner * (kernel - 1), inner * state_size, inner)


def mamba2_mixer(
    fields: ConfigFields,
    names: Mapping[str, str],
    inner: int,
    *,
    gated_norm: bool = True,
    bias: bool = False,
    out_bias: bool | None = None,
) -> Mixer:
    """Mamba-2 of `inner` channels, with what the config calls its parts."""
    heads, head_field = fields.positive_int(names["heads"]), names["head_dim"]
    is_auto = fields.values.get(head_field, "auto") in ("auto", None)
    head_dim = inner // heads if is_auto else fields.positive_int(head_field)
    if heads * head_dim != inner:
        raise fields.refuse(head_field, f"{heads} heads must have {inner} channels together")
    groups = fields.positive_int(names["groups"], 1)
    if heads % groups:
        raise fields.refuse(names["groups"], f"{heads} heads must share them")
    state_size = fields.positive_int(names["state"])
    kernel = fields.positive_int(names["kernel"], 4)
    matrices = mamba2_matrices(
        fields.positive_int("hidden_size"),
        heads,
        head_dim,
        groups,
        state_size,
        kernel,
        names["prefix"],
        bias=bias,
        conv_bias=fields.flag(names["conv_bias"], True),
        out_bias=out_bias,
        gated_norm=gated_norm,
    )
    return matrices, mamba2_state(fields, heads, head_dim, groups, state_size, kernel)
