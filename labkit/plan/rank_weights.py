"""What one rank of a pipeline stage holds of the weights and of the caches.

All ranks of a stage hold as much, but for biases of row-parallel layers (rank 0) and for experts
that do not divide: the rank that holds most is the one described. Standard library only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from labkit.plan.kept_by_model import KeptByModel
from labkit.plan.layout import Layout
from labkit.plan.model import CacheKind, LayerCache, ModelSpec
from labkit.plan.shard import pad_vocab, pipeline_ranges
from labkit.plan.weights import Matrix, Split


@dataclass(frozen=True)
class RankCache:
    """What a rank keeps in equal layers, all `count` of them together.

    elements: that one token leaves. window: tokens kept at most; None keeps all.
    state_bytes: of one sequence, whatever its length.
    """

    count: int
    elements: int
    window: int | None
    state_bytes: float

    def tokens_kept(self, length: int) -> int:
        """How many of a sequence's tokens it holds."""
        return length if self.window is None else min(length, self.window)


@dataclass(frozen=True)
class StageShare:
    """One rank's part of a pipeline stage.

    weight_bytes: by part. caches: of the layers that keep something.
    """

    stage: int
    layers: range
    weight_bytes: Mapping[str, float]
    caches: tuple[RankCache, ...]

    @property
    def total_weight_bytes(self) -> float:
        """All parts."""
        return math.fsum(self.weight_bytes.values())

    def bytes_per_token(self, element_bytes: float) -> float:
        """That one token leaves in the caches which grow without end."""
        return element_bytes * sum(c.elements for c in self.caches if c.window is None)

    def sequence_bytes(self, length: int, element_bytes: float) -> float:
        """That a sequence of `length` tokens leaves, windows and states included."""
        return sum(
            cache.tokens_kept(length) * cache.elements * element_bytes + cache.state_bytes
            for cache in self.caches
        )


_SHARES: KeptByModel[tuple[StageShare, ...]] = KeptByModel()


def stage_shares(
    model: ModelSpec, layout: Layout, num_redundant_experts: int = 0
) -> tuple[StageShare, ...]:
    """What a rank of each stage holds; kept for each model, so asking again costs nothing.

    Raises:
        PartitionError: a stage would hold no layer.
    """
    key = (layout.tp, layout.pp, layout.dp, layout.ep, num_redundant_experts)
    return _SHARES.get(model, key, lambda: _stage_shares(model, layout, num_redundant_experts))


def rank_bytes(matrix: Matrix, layout: Layout, num_redundant_experts: int = 0) -> float:
    """Bytes of one layer's `matrix` that a rank holds; of experts, those of the fullest rank."""
    if matrix.is_expert and matrix.split is not Split.WHOLE:
        held = -(-(matrix.copies + num_redundant_experts) // layout.ep)
        return held * matrix.bytes_each / layout.expert_tp
    tp = layout.tp
    if matrix.split is Split.VOCAB:
        return matrix.total_bytes * pad_vocab(matrix.out_features, tp) / (matrix.out_features * tp)
    return matrix.total_bytes * rank_share(matrix, tp)


def rank_share(matrix: Matrix, tp: int) -> float:
    """The part of one copy that a rank holds, padding left out."""
    return 1.0 if matrix.split is Split.WHOLE else head_share(matrix.heads, tp)


def kv_heads_held(cache: LayerCache, tp: int) -> int:
    """KV heads that a rank keeps: its part, one of its own at least; a latent whole."""
    return cache.heads if cache.kind is CacheKind.LATENT else -(-cache.heads // tp)


def head_share(heads: int, tp: int) -> float:
    """The part that a rank holds of what is cut between `heads`; of single features if 0."""
    return -(-heads // tp) / heads if heads else 1 / tp


def _stage_shares(model: ModelSpec, layout: Layout, redundant: int) -> tuple[StageShare, ...]:
    stages = pipeline_ranges(model.num_layers, layout.pp)
    kept: dict[object, StageShare] = {}
    found = []
    for index, stage in enumerate(stages):
        layers, last = model.kinds_in(stage), index == len(stages) - 1
        key = (index == 0, last, *((id(layer), count) for layer, count in layers))
        if key in kept:
            found.append(replace(kept[key], stage=index, layers=stage))
            continue
        bytes_by_part: defaultdict[str, float] = defaultdict(float)
        for matrix in model.embedding if index == 0 else ():
            bytes_by_part[matrix.part] += rank_bytes(matrix, layout)
        for layer, count in layers:
            for matrix in layer.matrices:
                bytes_by_part[matrix.part] += count * rank_bytes(matrix, layout, redundant)
        for matrix in _last(model, layout.pp) if last else ():
            bytes_by_part[matrix.part] += rank_bytes(matrix, layout)
        caches = tuple(
            _rank_cache(layer.cache, count, layout.tp)
            for layer, count in layers
            if layer.cache.kind is not CacheKind.NONE
        )
        kept[key] = StageShare(index, stage, MappingProxyType(dict(bytes_by_part)), caches)
        found.append(kept[key])
    return tuple(found)


def _last(model: ModelSpec, pp: int) -> tuple[Matrix, ...]:
    """The head; where it is tied to an embedding on another stage, with a copy of that."""
    if not model.tie_word_embeddings or pp == 1:
        return model.head
    return (*model.head, *(m for m in model.embedding if m.split is Split.VOCAB))


def _rank_cache(cache: LayerCache, count: int, tp: int) -> RankCache:
    state = cache.state_elements * cache.state_bytes_per_element
    return RankCache(
        count=count,
        elements=count * kv_heads_held(cache, tp) * cache.elements_per_head,
        window=cache.window,
        state_bytes=count * state * head_share(cache.state_heads, tp) if state else 0.0,
    )
