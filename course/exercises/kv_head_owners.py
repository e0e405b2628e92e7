"""Exercise: which KV heads each tensor parallel rank holds, shared ones included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.exercise import Case, Exercise, Outcome, case_weight
from labkit.plan.shard import partition_heads

Owners = list[list[int]]

MESSAGES = {
    "not-replicated": "Some ranks hold no KV head at all. There are more ranks than KV heads, each "
    "KV head went to one rank, and the query heads of the others have nothing to attend to.",
    "round-robin": "The KV heads were dealt out like cards, one to each rank in turn. A rank's "
    "query heads are neighbours, and neighbours share a KV head: another one than it was dealt.",
    "one-head-per-rank": "Every rank holds one KV head although its query heads use several: some "
    "KV heads are on no rank.",
    "all-heads-on-every-rank": "Every rank holds every KV head. It works, and it saves no memory: "
    "the KV cache is as large on each rank as on one.",
    "query-heads": "These are the query heads of each rank. Several query heads share one KV head.",
    "repeated-per-query-head": "A KV head is listed once for each query head that uses it. A rank "
    "stores it once.",
    "last-head-for-the-rest": "The first ranks have a KV head each, and all ranks after them have "
    "the last one. All KV heads have equally many query heads, so they have equally many ranks.",
    "no-such-head": "Some ranks hold KV heads that the model does not have: the numbers go on "
    "rising after the last KV head.",
    "interleaved-groups": "Query heads were matched to KV heads by remainder, as if query head 1 "
    "used KV head 1. The query heads of one KV head are neighbours.",
    "group-size-for-replicas": "The number of neighbouring ranks that share a KV head was taken "
    "to be the number of query heads that share it. These are two numbers.",
    "ranks-per-head": "The lists are the wrong way round: one for each KV head, with its ranks.",
    "not-lists": "There is one number for each rank. A rank may hold several KV heads, so each "
    "rank needs a list.",
}


def _wrong(heads: int, kv_heads: int, tp: int, right: Owners) -> Iterator[tuple[str, Returns]]:
    for key, owners in _owners(heads, kv_heads, tp, right):
        yield key, on_every_rank(owners)


def _owners(heads: int, kv_heads: int, tp: int, right: Owners) -> Iterator[tuple[str, Any]]:
    """What each mistake returns; with few ranks some of it is right."""
    ranks = range(tp)
    group, queries = heads // kv_heads, heads // tp
    of_rank = [range(rank * queries, (rank + 1) * queries) for rank in ranks]
    if tp > kv_heads:
        yield "round-robin", [[rank % kv_heads] for rank in ranks]
        yield "last-head-for-the-rest", [[min(rank, kv_heads - 1)] for rank in ranks]
        yield "group-size-for-replicas", [[rank // group] for rank in ranks]
    else:
        yield "one-head-per-rank", [[rank * kv_heads // tp] for rank in ranks]
        yield "one-head-per-rank", [[rank] for rank in ranks]
        yield "round-robin", [[head for head in range(kv_heads) if head % tp == r] for r in ranks]
    yield "all-heads-on-every-rank", [list(range(kv_heads)) for _ in ranks]
    yield "query-heads", [list(part) for part in of_rank]
    yield "repeated-per-query-head", [[q // group for q in part] for part in of_rank]
    yield "interleaved-groups", [sorted({q % kv_heads for q in part}) for part in of_rank]
    yield "ranks-per-head", [[r for r in ranks if h in right[r]] for h in range(kv_heads)]
    yield "not-lists", [owned[0] for owned in right]


def _shown(kv_heads: int) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    yield "not-replicated", lambda outcome: any(len(held) == 0 for held in outcome.returned[0])
    yield (
        "no-such-head",
        lambda outcome: any(head >= kv_heads for held in outcome.returned[0] for head in held),
    )


def _case(heads: int, kv_heads: int, tp: int) -> Case:
    def arguments(rank: int) -> Mapping[str, Any]:
        return {"num_heads": heads, "num_kv_heads": kv_heads, "tp": tp}

    partition = partition_heads(heads, kv_heads, tp)
    right = [list(partition.kv_heads(rank)) for rank in range(tp)]
    return Case(
        name=f"{heads} query heads, {kv_heads} KV head{'s' * (kv_heads > 1)}, TP {tp}",
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(right),
        mistakes=mistakes(MESSAGES, _wrong(heads, kv_heads, tp, right), _shown(kv_heads)),
        weight=case_weight(tp),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (_case(8, 4, 1), _case(12, 6, 3), _case(12, 3, 6), _case(32, 4, 16))


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(8, 4, 4),
        _case(16, 8, 4),
        _case(24, 12, 3),
        _case(8, 1, 4),
        _case(20, 5, 10),
        _case(64, 8, 32),
    )


EXERCISE = Exercise(
    name="kv_head_owners",
    chapter="02_tensor_parallel",
    title="Who holds which KV heads",
    function="kv_head_owners",
    parameters=("num_heads", "num_kv_heads", "tp"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
