"""A dense decoder from a config's fields and what its family fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from labkit.plan.attention_windows import WindowRule, no_windows
from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import MOST_LAYERS, read_dtype, stored_as
from labkit.plan.layer_shapes import (
    NormOfHeads,
    attention_matrices,
    gated_mlp_matrices,
    learned_positions,
    norm,
    plain_mlp_matrices,
    vocabulary,
)
from labkit.plan.model import CacheKind, LayerCache, LayerSpec, ModelSpec
from labkit.plan.weights import Matrix


@dataclass(frozen=True)
class Flag:
    """A config's own word for yes or no, and what it means where it is absent."""

    field: str
    default: bool = False


Bias = bool | Flag


@dataclass(frozen=True)
class Family:
    """What a family of dense decoders fixes; a `Flag` is left to the config.

    Attributes:
        norms: of a layer. `norm_bias`: they have biases; `norm_weights`: they have scales.
        kv_heads: where the config does not say: "query" as many as query heads, a number, or
            "needed".
        derives_head_dim: hidden size by heads where the config does not give it.
        square_attention: the heads together must be as wide as the hidden size.
        names: how the config calls a field, the first of several that is there.
        intermediate_factor: MLP width by hidden size where the config gives none; 0 if it must.
        intermediate_shares: MLP matrices that the config's width is divided over.
        positions: the field with the number of learned positions; "" for none.
        position_offset: learned positions beyond those.
        extra: further weights of each layer: name and size; "heads", "hidden", "intermediate".
    """

    qkv_bias: Bias = False
    o_bias: Bias = False
    mlp_bias: Bias = False
    norm_bias: Bias = False
    head_bias: Bias = False
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    norm_weights: bool = True
    qk_norm: NormOfHeads = "none"
    qk_norm_flag: Flag | None = None
    qk_norm_bias: bool = False
    gated: bool = True
    mlp_names: tuple[str, str] = ("mlp.up_proj", "mlp.down_proj")
    tied: bool = False
    kv_heads: int | str = "needed"
    derives_head_dim: bool = True
    square_attention: bool = False
    windows: WindowRule = no_windows
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    intermediate_factor: int = 0
    intermediate_shares: int = 1
    positions: str = ""
    position_offset: int = 0
    embedding_norm: bool = False
    extra: tuple[tuple[str, str], ...] = ()


_BIAS_FLAGS = ("attention_bias", "qkv_bias", "use_qkv_bias", "bias", "use_bias")
_NORM_FLAGS = ("use_qk_norm", "qk_layernorm", "qk_norm")


def read_dense(fields: ConfigFields, family: Family) -> ModelSpec:
    """The model that the fields describe, of this family.

    Raises:
        UnsupportedModelError: names the field that is missing, wrong or not of this family.
    """
    _read_what_is_fixed(fields, family)
    hidden = size(fields, family, "hidden_size")
    heads = size(fields, family, "num_attention_heads")
    kv_heads = read_kv_heads(fields, family, heads)
    head_dim = read_head_dim(fields, family, hidden, heads)
    intermediate = _intermediate_size(fields, family, hidden)
    num_layers = size(fields, family, "num_hidden_layers", most=MOST_LAYERS)
    windows = family.windows(fields, num_layers)
    matrices = stored_as(
        layer_matrices(fields, family, hidden, heads, kv_heads, head_dim, intermediate),
        read_dtype(fields),
    )
    by_window = {
        window: attention_layer(matrices, heads, kv_heads, head_dim, window)
        for window in set(windows)
    }
    return assemble(fields, family, hidden, tuple(by_window[window] for window in windows))


def layer_matrices(
    fields: ConfigFields,
    family: Family,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    intermediate: int,
) -> tuple[Matrix, ...]:
    """Everything one layer holds."""
    flag = family.qk_norm_flag
    mlp_bias = says(fields, family.mlp_bias)
    extra_sizes = {"heads": heads, "hidden": hidden, "intermediate": intermediate, "one": 1}
    return (
        *norms(fields, family, family.norms, hidden),
        *attention_matrices(
            hidden,
            heads,
            kv_heads,
            head_dim,
            qkv_bias=says(fields, family.qkv_bias),
            o_bias=says(fields, family.o_bias),
            qk_norm=family.qk_norm if flag is None or says(fields, flag) else "none",
            qk_norm_bias=family.qk_norm_bias,
        ),
        *(
            gated_mlp_matrices(hidden, intermediate, bias=mlp_bias)
            if family.gated
            else plain_mlp_matrices(hidden, intermediate, bias=mlp_bias, names=family.mlp_names)
        ),
        *(norm(name, extra_sizes[what]) for name, what in family.extra),
    )


def attention_layer(
    matrices: tuple[Matrix, ...], heads: int, kv_heads: int, head_dim: int, window: int | None
) -> LayerSpec:
    """A layer with keys and values of all tokens, or of a window's."""
    kind = CacheKind.FULL if window is None else CacheKind.WINDOW
    cache = LayerCache(kind, kv_heads, 2 * head_dim, window=window)
    return LayerSpec(matrices, cache, num_heads=heads, score_dim=head_dim, value_dim=head_dim)


def assemble(
    fields: ConfigFields, family: Family, hidden: int, layers: tuple[LayerSpec, ...]
) -> ModelSpec:
    """The model around its layers: embedding, positions, final norm, LM head."""
    vocab = size(fields, family, "vocab_size")
    tied = fields.flag("tie_word_embeddings", family.tied)
    embedding = [vocabulary("model.embed_tokens", "embedding", vocab, hidden)]
    longest = _name(fields, family, "max_position_embeddings")
    if family.positions:
        positions = fields.positive_int(longest) + family.position_offset
        embedding.append(learned_positions("model.embed_positions", positions, hidden))
    if family.embedding_norm:
        embedding += norms(fields, family, ("model.embed_layernorm",), hidden)
    head_bias = says(fields, family.head_bias)
    head = vocabulary("lm_head", "LM head", vocab, hidden, bias=head_bias)
    final = (*norms(fields, family, ("model.norm",), hidden), *(() if tied else (head,)))
    dtype = read_dtype(fields)
    return ModelSpec(
        model_type=str(fields.values["model_type"]),
        hidden_size=hidden,
        vocab_size=vocab,
        layers=layers,
        embedding=stored_as(embedding, dtype),
        head=stored_as(final, dtype),
        tie_word_embeddings=tied,
        max_position_embeddings=fields.positive_int(longest, 2048),
        dtype=dtype,
    )


def says(fields: ConfigFields, bias: Bias) -> bool:
    """Whether the family, or the config in its place, says yes."""
    return bias if isinstance(bias, bool) else fields.flag(bias.field, bias.default)


def norms(
    fields: ConfigFields, family: Family, names: tuple[str, ...], hidden: int
) -> tuple[Matrix, ...]:
    """Norms over the hidden size; none where the family's have no weights."""
    if not family.norm_weights:
        return ()
    return tuple(norm(name, hidden, bias=says(fields, family.norm_bias)) for name in names)


def size(fields: ConfigFields, family: Family, what: str, *, most: int | None = None) -> int:
    """A dimension, by whatever name the family gives it."""
    name = _name(fields, family, what)
    value = fields.positive_int(name)
    if most is not None and value > most:
        raise fields.refuse(name, f"at most {most} can be sized")
    return value


def read_kv_heads(fields: ConfigFields, family: Family, heads: int) -> int:
    """KV heads, which the query heads must share evenly."""
    name = _name(fields, family, "num_key_value_heads")
    is_null = name in fields.values and not fields.has(name)
    if isinstance(family.kv_heads, int):
        kv_heads = family.kv_heads
    elif family.kv_heads == "query" or is_null:
        kv_heads = fields.positive_int(name, heads)
    else:
        kv_heads = fields.positive_int(name)
    if heads % kv_heads:
        raise fields.refuse(name, f"{heads} attention heads must share them")
    return kv_heads


def read_head_dim(fields: ConfigFields, family: Family, hidden: int, heads: int) -> int:
    """The size of a head: given, or hidden size by heads where the family derives it."""
    name = _name(fields, family, "head_dim")
    if fields.has(name) or not family.derives_head_dim:
        head_dim = fields.positive_int(name)
        if family.square_attention and heads * head_dim != hidden:
            raise fields.refuse(name, f"{heads} heads must be as wide as the hidden size, {hidden}")
        return head_dim
    head_dim = hidden // heads
    if head_dim * heads != hidden:
        field = _name(fields, family, "hidden_size")
        raise fields.refuse(field, f"not a multiple of {heads} heads, and no {name} is given")
    return head_dim


def _read_what_is_fixed(fields: ConfigFields, family: Family) -> None:
    """Flags for what the family has in any case say nothing, whatever they say."""
    if family.qkv_bias is True:
        for name in _BIAS_FLAGS:
            fields.flag(name)
    if family.qk_norm != "none" and family.qk_norm_flag is None:
        for name in _NORM_FLAGS:
            fields.flag(name)


def _intermediate_size(fields: ConfigFields, family: Family, hidden: int) -> int:
    name = _name(fields, family, "intermediate_size")
    if family.intermediate_factor and not fields.has(name):
        return family.intermediate_factor * hidden
    width = fields.positive_int(name)
    if width % family.intermediate_shares:
        raise fields.refuse(name, f"it must divide by {family.intermediate_shares}")
    return width // family.intermediate_shares


def _name(fields: ConfigFields, family: Family, what: str) -> str:
    """What this config calls a field: the first of the family's names that it has."""
    names = family.names.get(what, (what,))
    return next((name for name in names if fields.has(name)), names[0])
