"""What tensor parallelism cuts of a model: heads and widths, and what must stay together in them.

Read off the inventory of matrices: of a `ModelSpec`, or of what a `DecoderSpec` would hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labkit.plan.decoder import DecoderSpec
from labkit.plan.layer_shapes import gated_mlp_matrices
from labkit.plan.model import LayerSpec, ModelSpec
from labkit.plan.weights import Matrix, Split, WeightFormat

PADDABLE = {"MLP": "MLP", "experts": "expert MLP", "shared experts": "shared expert MLP"}
"""Parts whose inner width lies between two projections, so that zero channels change nothing."""
_DEALT_WHOLE = ("mxfp4",)
"""Formats whose experts vLLM and SGLang deal out in whole groups, the last rank padded."""
_WORD_BITS = 32


@dataclass(frozen=True)
class Unit:
    """Features of a matrix that must stay on one rank. `is_group`: they share a scale by inputs."""

    size: int
    title: str
    matrix: str
    is_group: bool = False


@dataclass(frozen=True)
class CutHeads:
    """A matrix cut at the borders of heads.

    Attributes:
        count, kv_count: query and KV heads of the layer; twice the same where there is one kind.
        is_kv: whether it is cut as KV heads are: copied above their number.
        per_head: features of one head.
    """

    count: int
    kv_count: int
    is_kv: bool
    per_head: int
    units: tuple[Unit, ...]
    part: str = "attention"


@dataclass(frozen=True)
class CutWidth:
    """Matrices of a part that are cut along the same features, at any of them."""

    label: str
    size: int
    units: tuple[Unit, ...]
    is_paddable: bool
    is_expert: bool
    is_dealt_whole: bool


@dataclass(frozen=True)
class CutFeatures:
    """All that rules of division need to know of a model.

    Attributes:
        attention: query and KV heads of each kind of layer that attends; 0 KV heads where none are
            divided: a latent is shared by all heads, another layer's cache is that layer's.
        experts: routed experts of each kind of layer that has them.
    """

    model_type: str
    num_layers: int
    vocab_size: int
    attention: tuple[tuple[int, int], ...]
    heads: tuple[CutHeads, ...]
    widths: tuple[CutWidth, ...]
    experts: tuple[int, ...]


def cut_features(spec: DecoderSpec | ModelSpec) -> CutFeatures:
    """What is cut of a model."""
    if isinstance(spec, DecoderSpec):
        return _of_decoder(spec)
    kinds = [layer for layer, _ in spec.layer_kinds]
    attention = {(layer.num_heads, _kv_heads(layer)): None for layer in kinds if layer.num_heads}
    experts = {layer.experts.num_experts: None for layer in kinds if layer.experts}
    return CutFeatures(
        spec.model_type,
        spec.num_layers,
        spec.vocab_size,
        tuple(attention),
        tuple(dict.fromkeys(heads for layer in kinds for heads in _heads_of(layer))),
        _widths(matrix for layer in kinds for matrix in layer.matrices),
        tuple(experts),
    )


def _of_decoder(spec: DecoderSpec) -> CutFeatures:
    mlp = gated_mlp_matrices(spec.hidden_size, spec.intermediate_size)
    return CutFeatures(
        spec.model_type,
        spec.num_layers,
        spec.vocab_size,
        ((spec.num_heads, spec.num_kv_heads),),
        (),
        _widths(mlp),
        (),
    )


def _kv_heads(layer: LayerSpec) -> int:
    found = [
        matrix.heads
        for matrix in layer.matrices
        if matrix.part == "attention" and matrix.replicates and matrix.heads
    ]
    return max(found, default=0)


def _heads_of(layer: LayerSpec) -> Iterable[CutHeads]:
    kv_heads = _kv_heads(layer)
    for matrix in layer.matrices:
        if not matrix.heads or matrix.split not in (Split.COLUMN, Split.ROW):
            continue
        per_head, units = _cut_size(matrix) // matrix.heads, _units(matrix)
        own = {layer.num_heads, kv_heads if matrix.replicates else layer.num_heads}
        if matrix.part == "attention" and matrix.heads in own:
            if units:
                yield CutHeads(layer.num_heads, kv_heads or 1, matrix.replicates, per_head, units)
        else:
            count, name = matrix.heads, f"{matrix.part} {_short(matrix)}"
            yield CutHeads(count, count, matrix.replicates, per_head, units, name)


def _widths(matrices: Iterable[Matrix]) -> tuple[CutWidth, ...]:
    cut = [
        matrix
        for matrix in dict.fromkeys(matrices)
        if not matrix.heads and matrix.split in (Split.COLUMN, Split.ROW)
    ]
    inner = {(matrix.part, matrix.in_features) for matrix in cut if matrix.split is Split.ROW}
    found: dict[tuple[str, int], list[Matrix]] = {}
    for matrix in cut:
        size = _cut_size(matrix)
        is_fused = (matrix.part, size) not in inner and (matrix.part, size // 2) in inner
        key = (matrix.part, size // 2 if is_fused else size)
        if matrix.part not in PADDABLE:
            key = (f"{matrix.part} {_short(matrix)}", size)
        found.setdefault(key, []).append(matrix)
    return tuple(
        CutWidth(
            PADDABLE.get(part, part),
            size,
            tuple(dict.fromkeys(unit for matrix in some for unit in _units(matrix))),
            part in PADDABLE,
            any(matrix.is_expert for matrix in some),
            all(matrix.format.name in _DEALT_WHOLE for matrix in some),
        )
        for (part, size), some in found.items()
    )


def _units(matrix: Matrix) -> tuple[Unit, ...]:
    format, name = matrix.format, _short(matrix)
    found = []
    if matrix.split is Split.ROW and format.group_size > 1:
        title = f"quantisation group of {format.group_size}"
        found.append(Unit(format.group_size, title, name, is_group=True))
    if matrix.split is Split.COLUMN and format.group_rows > 1:
        found.append(Unit(format.group_rows, f"quantisation block of {format.group_rows}", name))
    packed = _packed(format)
    if packed > 1 and not found:
        found.append(Unit(packed, f"32-bit word of {packed} weights", name))
    return tuple(found)


def _packed(format: WeightFormat) -> int:
    """Weights that share a 32-bit word: narrow integers do."""
    is_narrow = format.name.startswith("int") and format.bits < 8
    return int(_WORD_BITS // format.bits) if is_narrow and _WORD_BITS % format.bits == 0 else 1


def _cut_size(matrix: Matrix) -> int:
    return matrix.out_features if matrix.split is Split.COLUMN else matrix.in_features


def _short(matrix: Matrix) -> str:
    return matrix.name.rsplit(".", 1)[-1]
