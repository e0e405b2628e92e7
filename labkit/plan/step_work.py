"""What the busiest rank of each pipeline stage does in a step: bytes, FLOPs, messages.

Only what does not depend on the batch or the context is counted here, once for each model and
layout, so that a step costs a few multiplications afterwards.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from labkit.plan.kept_by_model import KeptByModel
from labkit.plan.layout import Layout
from labkit.plan.model import LayerCache, LayerSpec, ModelSpec
from labkit.plan.rank_weights import head_share, kv_heads_held, rank_share
from labkit.plan.shard import pipeline_ranges
from labkit.plan.weights import Matrix, Split

_NORM_PASSES = 10
"""Times a layer reads or writes a hidden state whole on every rank: two norms with their residual
(4 each), and the two outputs that are reduced."""


@dataclass(frozen=True)
class ExpertWork:
    """The routed experts of equal layers, on the busiest of `ranks` ranks.

    count: of such layers. held: experts on a rank. bytes_each, flops_each: of the rank's part of
    one expert, the second for one token.
    """

    count: int
    num_experts: int
    top_k: int
    held: int
    ranks: int
    bytes_each: float
    flops_each: float
    dtype: str

    def touched(self, tokens: float) -> float:
        """Experts that `tokens` tokens use on the rank where these are most.

        Each expert is used with probability 1 - (1 - k/E)^B; the ranks' numbers scatter around the
        mean, and all wait for the largest, taken as that of as many normal draws (Blom).
        """
        used = expected_coverage(self.num_experts, self.top_k, tokens)
        scatter = math.sqrt(self.held * used * (1.0 - used))
        return min(self.held, self.held * used + largest_draw(self.ranks) * scatter)


@dataclass(frozen=True)
class CacheWork:
    """The caches of equal layers, on one rank; sizes are of all `count` layers together.

    elements: that one token leaves. window: tokens kept at most. state_bytes: of a sequence.
    score_flops: for each token that a query looks at.
    """

    elements: int
    window: int | None
    state_bytes: float
    score_flops: float

    def kept(self, context: float) -> float:
        """Tokens of a sequence it holds."""
        return context if self.window is None else min(context, self.window)

    def looked_at(self, prompt: float, context: float) -> float:
        """Pairs of a query and a token it sees, for `prompt` tokens after `context` others."""
        if self.window is None or context + prompt <= self.window:
            return prompt * context + prompt * (prompt + 1) / 2
        growing = max(0.0, self.window - context)
        return growing * context + growing * (growing + 1) / 2 + (prompt - growing) * self.window


@dataclass(frozen=True)
class StageWork:
    """One pipeline stage, on its busiest rank.

    Attributes:
        num_layers: it has.
        weight_bytes: read in every step: all but the routed experts and the embedding.
        flops: for each token, by dtype, of those weights; `head_flops` of the LM head, which only
            the tokens to be sampled from need.
        activation_bytes: read and written for each token between the products.
        all_reduces: of a hidden state over the TP group.
        moe_layers: that send tokens to experts elsewhere and back, where attention has copies.
        gather_bytes: of the logits of one token; 0 but in the last stage.
    """

    num_layers: int
    weight_bytes: float
    flops: tuple[tuple[str, float], ...]
    head_flops: tuple[str, float]
    experts: tuple[ExpertWork, ...]
    caches: tuple[CacheWork, ...]
    activation_bytes: float
    all_reduces: int
    moe_layers: int
    gather_bytes: float


def element_bytes(model: ModelSpec) -> float:
    """Bytes of an element of a hidden state."""
    return 4.0 if model.dtype == "float32" else 2.0


@functools.cache
def largest_draw(number: int) -> float:
    """The expected largest of `number` standard normal draws; 0 for one (Blom's approximation)."""
    return 0.0 if number == 1 else NormalDist().inv_cdf((number - 0.375) / (number + 0.25))


def expected_coverage(num_experts: int, top_k: int, tokens: float) -> float:
    """The expected fraction of experts that `tokens` tokens touch, each `top_k` even ones (E1)."""
    return 1.0 - (1.0 - top_k / num_experts) ** tokens


_WORKS: KeptByModel[tuple[StageWork, ...]] = KeptByModel()


def stage_works(model: ModelSpec, layout: Layout) -> tuple[StageWork, ...]:
    """The work of each stage, equal ones the same object; kept for each model.

    Raises:
        PartitionError: a stage would hold no layer.
    """
    key = (layout.tp, layout.pp, layout.dp, layout.ep)
    return _WORKS.get(model, key, lambda: _stage_works(model, layout))


def _stage_works(model: ModelSpec, layout: Layout) -> tuple[StageWork, ...]:
    """Stages that are equal are one object."""
    stages = pipeline_ranges(model.num_layers, layout.pp)
    kept: dict[object, StageWork] = {}
    found = []
    for index, stage in enumerate(stages):
        layers, last = model.kinds_in(stage), index == len(stages) - 1
        key = (last, *((id(layer), count) for layer, count in layers))
        if key not in kept:
            kept[key] = _stage_work(model, layout, layers, last)
        found.append(kept[key])
    return tuple(found)


def _stage_work(
    model: ModelSpec, layout: Layout, layers: Sequence[tuple[LayerSpec, int]], last: bool
) -> StageWork:
    tp, read = layout.tp, 0.0
    flops: defaultdict[str, float] = defaultdict(float)
    for layer, count in layers:
        for matrix in layer.matrices:
            if not matrix.is_expert:
                read += count * matrix.total_bytes * rank_share(matrix, tp)
                if matrix.in_features > 1:
                    flops[_dtype(matrix, model)] += count * _flops(matrix, tp)
    head = _head(model) if last else ()
    read += sum(matrix.total_bytes * rank_share(matrix, tp) for matrix in head)
    head_dtype = _dtype(head[-1], model) if head else model.dtype
    element = element_bytes(model)
    moe = sum(count for layer, count in layers if layer.experts)
    exchanges = layout.dp > 1
    return StageWork(
        num_layers=sum(count for _, count in layers),
        weight_bytes=read,
        flops=tuple(flops.items()),
        head_flops=(head_dtype, sum(_flops(matrix, tp) for matrix in head)),
        experts=tuple(
            work for layer, count in layers for work in _experts(layer, count, layout, model)
        ),
        caches=tuple(_caches(layers, tp)),
        activation_bytes=element
        * sum(count * _activations(model, layer, tp) for layer, count in layers),
        all_reduces=2 * sum(count for _, count in layers) - moe * exchanges,
        moe_layers=moe * exchanges,
        gather_bytes=element * model.vocab_size if last else 0.0,
    )


def _head(model: ModelSpec) -> tuple[Matrix, ...]:
    """What the last stage reads for the logits: the head, or the embedding it is tied to."""
    table = [matrix for matrix in model.embedding if matrix.split is Split.VOCAB]
    return (*model.head, *table) if model.tie_word_embeddings else model.head


def _flops(matrix: Matrix, tp: int) -> float:
    if matrix.in_features == 1:
        return 0.0
    return 2 * matrix.copies * matrix.out_features * matrix.in_features * rank_share(matrix, tp)


def _dtype(matrix: Matrix, model: ModelSpec) -> str:
    """Of its products: the format's, or the model's where only the weights are quantised."""
    return matrix.format.products or model.dtype


def _experts(
    layer: LayerSpec, count: int, layout: Layout, model: ModelSpec
) -> Iterable[ExpertWork]:
    if layer.experts is None:
        return
    matrices = [matrix for matrix in layer.matrices if matrix.is_expert]
    part = 1 / layout.expert_tp
    yield ExpertWork(
        count=count,
        num_experts=layer.experts.num_experts,
        top_k=layer.experts.top_k,
        held=-(-layer.experts.num_experts // layout.ep),
        ranks=layout.ep,
        bytes_each=part
        * sum(m.bytes_each * m.copies for m in matrices)
        / layer.experts.num_experts,
        flops_each=part
        * sum(2 * m.copies * m.out_features * m.in_features for m in matrices)
        / layer.experts.num_experts,
        dtype=_dtype(matrices[0], model) if matrices else model.dtype,
    )


def _caches(layers: Sequence[tuple[LayerSpec, int]], tp: int) -> Iterable[CacheWork]:
    """One entry for all layers whose caches and heads are equal."""
    counts: defaultdict[tuple[LayerCache, int, int], int] = defaultdict(int)
    for layer, count in layers:
        counts[layer.cache, layer.num_heads, layer.score_dim + layer.value_dim] += count
    for (cache, num_heads, dims), count in counts.items():
        state = cache.state_elements * cache.state_bytes_per_element
        yield CacheWork(
            elements=count * kv_heads_held(cache, tp) * cache.elements_per_head,
            window=cache.window,
            state_bytes=count * state * head_share(cache.state_heads, tp) if state else 0.0,
            score_flops=2.0 * count * -(-num_heads // tp) * dims,
        )


def _activations(model: ModelSpec, layer: LayerSpec, tp: int) -> float:
    """Elements read and written for each token: whole hidden states, and the outputs of the
    products, written and read again."""
    inside = sum(
        2 * m.active * m.out_features * (rank_share(m, tp) if not m.is_expert else 1 / tp)
        for m in layer.matrices
        if m.split is Split.COLUMN
    )
    return _NORM_PASSES * model.hidden_size + inside
