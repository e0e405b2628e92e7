"""What the readers of model families share: from a family's layers to its ModelSpec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from labkit.plan.config_fields import ConfigFields, is_whole
from labkit.plan.layer_shapes import norm, vocabulary
from labkit.plan.model import LayerSpec, ModelSpec
from labkit.plan.weights import BFLOAT16, FLOAT16, FLOAT32, Matrix, Split, WeightFormat

MOST_LAYERS = 10_000

FORMATS: Mapping[str, WeightFormat] = MappingProxyType(
    {"bfloat16": BFLOAT16, "float16": FLOAT16, "float32": FLOAT32}
)
"""How weights that are not quantised are stored, by the config's dtype."""


def assemble(
    fields: ConfigFields,
    layers: Sequence[LayerSpec],
    *,
    hidden_size: int | None = None,
    tied: bool = False,
    tied_field: str = "tie_word_embeddings",
    final_norm: Sequence[Matrix] | None = None,
    embedding: Iterable[Matrix] = (),
    head_bias: bool = False,
    mtp_layers: Sequence[LayerSpec] = (),
    mtp_extra: Iterable[Matrix] = (),
    max_positions: int | None = None,
    notes: tuple[str, ...] = (),
) -> ModelSpec:
    """A model of these layers, between an embedding and an LM head, stored in its dtype.

    `tied` is what the family does when the config does not say. `final_norm` replaces the one
    RMSNorm before the LM head; `embedding` comes on top of the token embedding.
    """
    hidden = hidden_size or fields.positive_int("hidden_size")
    vocab = fields.positive_int("vocab_size")
    is_tied = fields.flag(tied_field, tied)
    dtype = read_dtype(fields)

    def stored(matrices: Iterable[Matrix]) -> tuple[Matrix, ...]:
        return stored_as(matrices, dtype)

    kinds = {layer: replace(layer, matrices=stored(layer.matrices)) for layer in set(layers)}
    mtp_kinds = {layer: replace(layer, matrices=stored(layer.matrices)) for layer in mtp_layers}
    head = vocabulary("lm_head", "LM head", vocab, hidden, bias=head_bias)
    tied_bias = (Matrix("lm_head.bias", "LM head", vocab, 1, Split.VOCAB),) * head_bias
    norms = (norm("model.norm", hidden),) if final_norm is None else final_norm
    return ModelSpec(
        model_type=fields.word("model_type", ""),
        hidden_size=hidden,
        vocab_size=vocab,
        layers=tuple(kinds[layer] for layer in layers),
        embedding=stored(
            (vocabulary("model.embed_tokens", "embedding", vocab, hidden), *embedding)
        ),
        head=stored((*norms, *(tied_bias if is_tied else (head,)))),
        tie_word_embeddings=is_tied,
        mtp_layers=tuple(mtp_kinds[layer] for layer in mtp_layers),
        mtp_extra=stored(mtp_extra),
        max_position_embeddings=fields.positive_int(
            "max_position_embeddings", max_positions or 2048
        ),
        dtype=dtype,
        notes=notes,
    )


def layer_count(
    fields: ConfigFields, field: str = "num_hidden_layers", default: int | None = None
) -> int:
    """How many layers there are; not so many that listing them takes long."""
    count = fields.positive_int(field, default)
    if count > MOST_LAYERS:
        raise fields.refuse(field, f"at most {MOST_LAYERS} can be sized")
    return count


def first_of(fields: ConfigFields, *names: str) -> str:
    """The first of a field's names that the config has; the first of all where it has none."""
    return next((name for name in names if fields.has(name)), names[0])


def same_everywhere(fields: ConfigFields, field: str) -> int:
    """A positive number, given once or for each layer with the same value."""
    value = fields.values.get(field)
    if not isinstance(value, list | tuple):
        return fields.positive_int(field)
    if not value or any(not is_whole(v) or v < 1 or v != value[0] for v in value):
        raise fields.refuse(field, "one positive number for all layers is needed")
    return int(value[0])


def read_dtype(fields: ConfigFields) -> str:
    """The dtype of what is not quantised: bfloat16 where the config does not say."""
    name = "dtype" if fields.has("dtype") else "torch_dtype"
    dtype = fields.word(name, "bfloat16").removeprefix("torch.")
    if dtype not in FORMATS:
        raise fields.refuse(name, f"weights are {', '.join(FORMATS)} before they are quantised")
    return dtype


def stored_as(matrices: Iterable[Matrix], dtype: str) -> tuple[Matrix, ...]:
    """The matrices, unquantised, in a dtype of `FORMATS`."""
    return tuple(replace(matrix, format=FORMATS[dtype]) for matrix in matrices)


def predicted_layers(fields: ConfigFields, *names: str) -> int:
    """Layers of multi-token prediction, by the first of these names; none where none is there."""
    field = first_of(fields, *names)
    count = whole_number(fields, field, 0)
    if count > MOST_LAYERS:
        raise fields.refuse(field, f"at most {MOST_LAYERS} can be sized")
    return count


def whole_number(fields: ConfigFields, field: str, default: int | None = None) -> int:
    """A field that counts something of which there may be none."""
    if default is not None and not fields.has(field):
        return default
    value = fields.values.get(field)
    if not is_whole(value) or value < 0:
        raise fields.refuse(field, "a whole number of at least 0 is needed")
    return value


def layer_numbers(fields: ConfigFields, field: str) -> frozenset[int]:
    """A list of layer numbers, counted from 0; empty where there is none."""
    value = fields.values.get(field)
    if value is None:
        return frozenset()
    if not isinstance(value, list | tuple) or not all(is_whole(v) and v >= 0 for v in value):
        raise fields.refuse(field, "a list of layer numbers is needed")
    return frozenset(value)
