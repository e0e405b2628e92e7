"""How a quantised checkpoint stores each matrix, by its own rules.

Group sizes come from the config and never from shapes: a kernel that infers one from the width of
a shard finds a wrong one instead of failing. What a config says that is not known here is refused
by its field.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from labkit.plan.config_fields import ConfigFields
from labkit.plan.model import LayerSpec, ModelSpec
from labkit.plan.module_patterns import layer_module
from labkit.plan.quantization_formats import Rule
from labkit.plan.quantization_methods import read_rule
from labkit.plan.weights import Matrix, WeightFormat

_NEVER = frozenset({"norms", "router", "embedding", "MTP"})
_FIELDS = ("quantization_config", "compression_config")
_LEFT_OUT = ("indexer.weights_proj", "eh_proj")


def quantize(spec: ModelSpec, fields: ConfigFields) -> ModelSpec:
    """The model with each matrix stored as the checkpoint's quantisation config says.

    Embeddings, norms, routers and vectors stay as they are, and biases too.

    Raises:
        UnsupportedModelError: names the field of the config that is not known here.
    """
    name = next((name for name in _FIELDS if fields.nested(name)), None)
    if name is None:
        return spec
    rule = read_rule(ConfigFields(fields.nested(name), f"{fields.prefix}{name}."))
    layers = _stored_layers(spec.layers, rule, 0)
    return replace(
        spec,
        layers=layers,
        head=_stored(spec.head, [_format(matrix, rule, None) for matrix in spec.head]),
        mtp_layers=_stored_layers(spec.mtp_layers, rule, len(layers)),
        quantization=rule.words,
        notes=(*spec.notes, *rule.notes),
    )


def _stored_layers(layers: tuple[LayerSpec, ...], rule: Rule, first: int) -> tuple[LayerSpec, ...]:
    """Layers that were equal and stay so are the same object afterwards."""
    known: dict[tuple[int, tuple[int, ...]], LayerSpec] = {}
    found = []
    for index, layer in enumerate(layers, first):
        formats = [_format(matrix, rule, index) for matrix in layer.matrices]
        key = id(layer), tuple(map(id, formats))
        if key not in known:
            known[key] = replace(layer, matrices=_stored(layer.matrices, formats))
        found.append(known[key])
    return tuple(found)


def _stored(
    matrices: Iterable[Matrix], formats: Iterable[WeightFormat | None]
) -> tuple[Matrix, ...]:
    return tuple(
        matrix if format is None else replace(matrix, format=format)
        for matrix, format in zip(matrices, formats, strict=True)
    )


def _format(matrix: Matrix, rule: Rule, layer: int | None) -> WeightFormat | None:
    """How the rule stores it; None where it stays as it is."""
    if matrix.in_features == 1 or matrix.part in _NEVER or matrix.name.endswith(_LEFT_OUT):
        return None
    module = matrix.name if layer is None else layer_module(layer, matrix.name)
    return rule.format_of(module, matrix.part)
