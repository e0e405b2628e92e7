"""Exercise: how many tokens the KV cache holds, rank by rank and stage by stage."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from course.exercises.plain_cases import Wrong, plain_case
from course.grading.exercise import Case, Exercise

MESSAGES = {
    "one-heap": "All GPUs' memory is added up, and all weights taken from the sum. Memory is no "
    "common heap: what one rank has left over, another cannot use.",
    "mean-of-stages": "This is the mean over the stages. A token needs room in every one of them.",
    "roomiest-stage": "This is what the roomiest stage holds. A token needs room in every stage.",
    "sum-of-stages": "The stages' tokens are added. Every token lies in all stages, each keeping "
    "its own layers' part of it.",
    "all-layers-each": "Each stage is charged the cache of all layers. It keeps that of its own.",
    "heads-not-divided": "A rank is charged all KV heads. Tensor parallelism deals them out.",
    "head-cut-up": "A rank holds less than one KV head here. A head is not cut: with more ranks "
    "than heads several ranks keep the same one whole.",
    "weights-not-divided": "Each rank is charged the whole stage's weights. Tensor parallelism "
    "cuts them.",
    "utilization-ignored": "All of the memory was used. An engine takes the part that it is told.",
    "utilization-of-the-rest": "The part that may be used was taken of what the weights leave. It "
    "is a part of the GPU's memory: weights and all else come out of it.",
    "overhead-ignored": "Nothing is left for activations and runtime.",
    "overhead-divided": "The overhead was divided by the ranks. Each rank has all of it.",
    "started-block": "A block that does not fit whole was counted. The cache is made of whole "
    "blocks.",
    "key-or-value": "A token takes half as much as it should: a head keeps a key and a value.",
    "below-nothing": "A stage has no room, and the result is fewer than no tokens. Where something "
    "does not fit, the cache holds none.",
}


def _pool(stage: Mapping[str, Any], a: Mapping[str, Any]) -> float:
    weights = stage["weight_bytes"] / a["tp"]
    return a["memory_bytes"] * a["utilization"] - weights - a["overhead_bytes"]


def _token(layers: int, a: Mapping[str, Any], heads: float | None = None) -> float:
    held = -(-a["num_kv_heads"] // a["tp"]) if heads is None else heads
    return 2 * layers * held * a["head_dim"] * a["bytes_per_element"]


def _blocks(pool: float, token: float, a: Mapping[str, Any]) -> int:
    return max(0, math.floor(pool / (token * a["block_size"]))) * a["block_size"]


def _each(
    a: Mapping[str, Any],
    pool: Callable[[Mapping[str, Any]], float] | None = None,
    token: Callable[[Mapping[str, Any]], float] | None = None,
) -> list[int]:
    """Tokens of each stage, with its pool or a token's bytes replaced."""
    pools = pool or (lambda stage: _pool(stage, a))
    tokens = token or (lambda stage: _token(stage["layers"], a))
    return [_blocks(pools(stage), tokens(stage), a) for stage in a["stages"]]


def _wrong(a: Mapping[str, Any]) -> Wrong:
    stages, tp = a["stages"], a["tp"]
    usable, each = a["memory_bytes"] * a["utilization"], _each(a)
    all_layers = sum(stage["layers"] for stage in stages)
    whole = sum(stage["weight_bytes"] for stage in stages)
    heap = tp * len(stages) * (usable - a["overhead_bytes"]) - whole
    if len(stages) > 1:
        yield "one-heap", _blocks(heap, _token(all_layers, a, a["num_kv_heads"]), a)
    yield "mean-of-stages", sum(each) // len(each)
    yield "roomiest-stage", max(each)
    yield "sum-of-stages", sum(each)
    yield "all-layers-each", min(_each(a, token=lambda stage: _token(all_layers, a)))
    heads = a["num_kv_heads"]
    yield "heads-not-divided", min(_each(a, token=lambda s: _token(s["layers"], a, heads)))
    if heads % tp:
        yield "head-cut-up", min(_each(a, token=lambda s: _token(s["layers"], a, heads / tp)))
    rest = a["overhead_bytes"]
    yield "weights-not-divided", min(_each(a, lambda s: usable - s["weight_bytes"] - rest))
    full = a["memory_bytes"] - usable
    yield "utilization-ignored", min(_each(a, lambda s: _pool(s, a) + full))
    part = a["utilization"]
    yield (
        "utilization-of-the-rest",
        min(_each(a, lambda s: (a["memory_bytes"] - s["weight_bytes"] / tp) * part - rest)),
    )
    yield (
        "utilization-of-the-rest",
        min(_each(a, lambda s: (a["memory_bytes"] - s["weight_bytes"] / tp - rest) * part)),
    )
    yield "overhead-ignored", min(_each(a, lambda s: _pool(s, a) + rest))
    yield "overhead-divided", min(_each(a, lambda s: _pool(s, a) + rest - rest / tp))
    yield "key-or-value", min(_each(a, token=lambda s: _token(s["layers"], a) / 2))
    exact = [_pool(stage, a) / _token(stage["layers"], a) for stage in stages]
    yield "started-block", max(0, math.floor(min(exact)))
    yield "started-block", max(0, math.ceil(min(exact) / a["block_size"])) * a["block_size"]
    if min(exact) < 0:
        yield "below-nothing", math.floor(min(exact) / a["block_size"]) * a["block_size"]
        yield "below-nothing", math.floor(min(exact))


def _case(name: str, **changed: Any) -> Case:
    a: dict[str, Any] = {
        "memory_bytes": 80_000_000_000,
        "utilization": 0.9,
        "overhead_bytes": 2_500_000_000,
        "stages": [{"layers": 80, "weight_bytes": 145_400_000_000}],
        "tp": 4,
        "num_kv_heads": 8,
        "head_dim": 128,
        "bytes_per_element": 2,
        "block_size": 16,
        **changed,
    }
    return plain_case(name, a, min(_each(a)), _wrong(a), MESSAGES)


def _two(layers: tuple[int, int], gigabytes: tuple[float, float]) -> list[dict[str, Any]]:
    return [
        {"layers": count, "weight_bytes": round(size * 1e9)}
        for count, size in zip(layers, gigabytes, strict=True)
    ]


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("the 72B over 4"),
        _case("the same over 24: more ranks than KV heads", tp=24),
        _case("two stages, the second heavier", stages=_two((41, 39), (75.9, 81.7)), tp=2),
        _case("over 2: no room", tp=2, overhead_bytes=3_000_000_000),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)
    memory = random.randint(150, 180) * 10**9
    heavy = random.uniform(60, 70)
    uneven = _two((33, 28), (heavy, heavy * 1.07))
    return (
        _case("another GPU", memory_bytes=memory, utilization=0.87, block_size=32),
        _case("one KV head", num_kv_heads=1, tp=8, head_dim=64, bytes_per_element=1),
        _case("uneven stages", stages=uneven, tp=2, num_kv_heads=4, block_size=64),
        _case("the first stage is the fullest", stages=_two((48, 32), (101.0, 80.0)), tp=2),
        _case("three KV heads over four", num_kv_heads=3, tp=4, memory_bytes=memory),
        _case("nothing left", memory_bytes=24_000_000_000, tp=4),
    )


EXERCISE = Exercise(
    name="kv_capacity",
    chapter="03_layout_planning",
    title="How many tokens there is room for",
    function="kv_capacity",
    parameters=(
        "memory_bytes",
        "utilization",
        "overhead_bytes",
        "stages",
        "tp",
        "num_kv_heads",
        "head_dim",
        "bytes_per_element",
        "block_size",
    ),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
