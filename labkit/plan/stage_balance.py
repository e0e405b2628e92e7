"""Layers dealt over pipeline stages by what they cost, not by their number.

The first stage also holds the embedding and the last one the LM head, so equal numbers of layers
make unequal stages: of bytes (both ends count) and of time (the LM head is read in every step, of
the embedding only a few rows). Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from labkit.plan.model import ModelSpec
from labkit.plan.shard import PartitionError, pipeline_ranges


def layer_bytes(model: ModelSpec) -> tuple[float, ...]:
    """Weights of each layer, in order."""
    return tuple(sum(matrix.total_bytes for matrix in layer.matrices) for layer in model.layers)


def end_bytes(model: ModelSpec) -> tuple[float, float]:
    """What the first and the last stage hold besides layers: the embedding; norm and LM head."""
    first = sum(matrix.total_bytes for matrix in model.embedding)
    last = sum(matrix.total_bytes for matrix in model.head)
    return first, last + (first if model.tie_word_embeddings else 0.0)


def balance_layers(
    costs: Sequence[float], stages: int, *, first: float = 0.0, last: float = 0.0
) -> tuple[range, ...]:
    """Neighbouring layers for each stage, so that the most expensive stage costs the least.

    Args:
        costs: of each layer, in any unit.
        first, last: what the first and the last stage cost besides their layers.

    Of equally good ways it takes the one whose stages differ least.

    Raises:
        PartitionError: a stage would hold no layer.
        ValueError: a cost below 0.
    """
    pipeline_ranges(len(costs), stages)
    if min(*costs, first, last) < 0:
        raise ValueError(f"costs must be at least 0, not {min(*costs, first, last)}")
    upto = [0.0, *accumulate(costs)]
    count = len(costs)

    def cost(stage: int, start: int, stop: int) -> float:
        ends = first * (stage == 0) + last * (stage == stages - 1)
        return upto[stop] - upto[start] + ends

    best: dict[int, tuple[float, float, tuple[int, ...]]] = {0: (0.0, 0.0, (0,))}
    for stage in range(stages):
        reached = {}
        for stop in range(stage + 1, count - (stages - stage - 1) + 1):
            ways = []
            for start, (highest, squares, borders) in best.items():
                if start < stop:
                    here = cost(stage, start, stop)
                    ways.append((max(highest, here), squares + here * here, (*borders, stop)))
            reached[stop] = min(ways)
        best = reached
    _, _, borders = best[count]
    return tuple(range(a, b) for a, b in pairwise(borders))


def stage_costs(
    costs: Sequence[float], ranges: Sequence[range], *, first: float = 0.0, last: float = 0.0
) -> tuple[float, ...]:
    """What each stage costs when its layers are `ranges`.

    Raises PartitionError unless the ranges cover the layers once, in order.
    """
    if [layer for stage in ranges for layer in stage] != list(range(len(costs))):
        raise PartitionError([f"the stages do not cover {len(costs)} layers once, in order"])
    inside = [sum(costs[layer] for layer in stage) for stage in ranges]
    inside[0] += first
    inside[-1] += last
    return tuple(inside)
