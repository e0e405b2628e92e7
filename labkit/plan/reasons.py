"""What speaks for and against a layout, each sentence with the figures it follows from."""

from __future__ import annotations

from collections.abc import Iterator

from labkit.plan.candidates import Candidate
from labkit.plan.model import CacheKind, ModelSpec
from labkit.plan.placement_order import all_reduced_bytes, compare_orders, crosses_nodes
from labkit.plan.quantity_text import bytes_text, duration, percent, times
from labkit.plan.serving_point import BatchLimit
from labkit.plan.shard import PartitionError, counted, partition_heads, pipeline_ranges
from labkit.plan.step_work import expected_coverage
from labkit.plan.steptime import StepTime

WORTH_SAYING = 0.1
"""The share of a step from which a term is named."""
_ALL_REDUCE = ("all-reduce latency", "all-reduce transfer", "logits gather")
_OVERHEAD = ("layer overhead", "step overhead", "sequence overhead")


def reasons_for(candidate: Candidate) -> tuple[str, ...]:
    """What speaks for it."""
    return tuple(sentence for part in _FOR for sentence in part(candidate))


def reasons_against(candidate: Candidate) -> tuple[str, ...]:
    """What speaks against it."""
    return tuple(sentence for part in _AGAINST for sentence in part(candidate))


def share(step: StepTime, *terms: str) -> float:
    """The part of a step that some terms take."""
    return sum(step.terms[term] for term in terms) / step.seconds


def kv_head_copies(model: ModelSpec, tp: int) -> int:
    """How often TP holds each KV head, in the layer where that is the most; 1 is no copy."""
    found = [1]
    for layer, _ in model.layer_kinds:
        if layer.cache.kind in (CacheKind.FULL, CacheKind.WINDOW) and layer.cache.heads:
            try:
                heads = partition_heads(layer.num_heads, layer.cache.heads, tp)
            except PartitionError:
                continue
            found.append(heads.num_kv_head_replicas)
    return max(found)


def _alone(candidate: Candidate) -> Iterator[str]:
    if candidate.layout.replica_size == 1:
        yield "A replica is one GPU: no GPU waits for another within a step."


def _tensor_parallel(candidate: Candidate) -> Iterator[str]:
    layout, question = candidate.layout, candidate.question
    if layout.tp == 1:
        return
    step = candidate.decode
    yield (
        f"Cut over TP {layout.tp}, reading weights takes {duration(step.terms['weights'])} of a "
        f"step of {duration(step.seconds)}."
    )
    links = question.links
    if not crosses_nodes(question, layout) and question.gpus > links.gpus_per_node:
        yield f"TP {layout.tp} stays inside a node, on {links.inside.title}."


def _replicas(candidate: Candidate) -> Iterator[str]:
    if candidate.layout.replicas > 1:
        yield f"{candidate.layout.replicas} replicas send nothing to one another."


def _stages(candidate: Candidate) -> Iterator[str]:
    orders = compare_orders(candidate.question, candidate.layout, candidate.batch)
    if orders is not None:
        yield orders.sentence


def _experts(candidate: Candidate) -> Iterator[str]:
    layout, model = candidate.layout, candidate.question.model
    if layout.ep == 1:
        return
    most = max(layer.experts.num_experts for layer, _ in model.layer_kinds if layer.experts)
    copies = candidate.question.engine.num_redundant_experts
    held = counted(-(-(most + copies) // layout.ep), "expert")
    more = f" and {copies} redundant copies" if copies else ""
    yield f"EP {layout.ep}: a GPU keeps {held} of a layer's {most}{more}."


def _latent_once(candidate: Candidate) -> Iterator[str]:
    layout = candidate.layout
    if candidate.question.model.is_latent and layout.tp == 1 and layout.dp > 1:
        yield (
            f"Each of the {layout.dp} copies of attention caches sequences of its own: no latent "
            "is held twice."
        )


def _keeps_limits(candidate: Candidate) -> Iterator[str]:
    if candidate.limited_by is BatchLimit.KV_CACHE:
        yield f"It keeps {candidate.question.slo} with every batch that its KV cache has room for."


def _undisturbed(candidate: Candidate) -> Iterator[str]:
    if candidate.pools is not None:
        yield (
            "Prefill has GPUs of its own: no prompt lengthens a decode step, which takes "
            f"{duration(candidate.tpot)}."
        )


def _all_reduces(candidate: Candidate) -> Iterator[str]:
    step, layout = candidate.decode, candidate.layout
    taken = share(step, *_ALL_REDUCE)
    if taken >= WORTH_SAYING:
        latency = step.terms["all-reduce latency"]
        yield (
            f"All-reduces take {percent(taken)} of the step; {duration(latency)} of it is "
            "latency, which no bandwidth shortens."
        )
    if crosses_nodes(candidate.question, layout):
        moved = all_reduced_bytes(candidate.question, layout, candidate.batch)
        link = candidate.question.links.between.title
        yield f"TP {layout.tp} crosses nodes: {bytes_text(moved)} a step over {link}."


def _copies(candidate: Candidate) -> Iterator[str]:
    layout, model = candidate.layout, candidate.question.model
    copies = kv_head_copies(model, layout.tp)
    if copies > 1:
        yield (
            f"KV heads are held {times(copies)}: {counted(model.num_kv_heads, 'KV head')} on TP "
            f"{layout.tp}, so part of the cache is copies."
        )
    if model.is_latent and layout.tp > 1:
        yield (f"The latent cache is held {times(layout.tp)}: TP {layout.tp} does not cut it.")
    if layout.replicas > 1:
        each = candidate.kv_tokens // layout.replicas
        yield (
            f"{_number(layout.replicas)} smaller KV pools of {each:,} tokens: a router has to keep "
            f"them evenly full, and the weights are held {times(layout.replicas)}."
        )


def _pipeline(candidate: Candidate) -> Iterator[str]:
    layout, step = candidate.layout, candidate.decode
    if layout.pp == 1:
        return
    yield (
        "The pipeline does not lower one request's latency: each token passes all "
        f"{layout.pp} stages."
    )
    idle = share(step, "pipeline bubble")
    if idle >= WORTH_SAYING:
        yield f"Stages idle {percent(idle)} of the time: {step.microbatches} in flight."
    stages = pipeline_ranges(candidate.question.model.num_layers, layout.pp)
    if stages.efficiency < 1:
        yield (
            f"{candidate.question.model.num_layers} layers on {layout.pp} stages: the fullest has "
            f"{max(map(len, stages))}, so stages are busy {percent(stages.efficiency)} at best."
        )


def _exchanges(candidate: Candidate) -> Iterator[str]:
    layout, step, question = candidate.layout, candidate.decode, candidate.question
    taken = share(step, "all-to-all")
    if taken >= WORTH_SAYING:
        yield f"All-to-alls take {percent(taken)} of the step."
    if layout.ep > 1:
        efficiency = question.efficiency
        yield (
            f"The busiest of {layout.ep} EP ranks sets the step; a balancedness of "
            f"{efficiency.balancedness:g} is {efficiency.label}."
        )
    experts = [layer.experts for layer, _ in question.model.layer_kinds if layer.experts]
    if experts:
        first = experts[0]
        covered = expected_coverage(first.num_experts, first.top_k, candidate.batch)
        if covered > 0.5:
            yield (
                f"A batch of {candidate.batch} touches {percent(covered)} of the experts: a step "
                "reads them like a dense model."
            )


def _batch(candidate: Candidate) -> Iterator[str]:
    length = candidate.question.length
    if candidate.limited_by is BatchLimit.SLO:
        room = candidate.layout.dp * int(candidate.memory.max_concurrency(length))
        yield (f"The SLO stops the batch at {candidate.batch}; the KV cache has room for {room}.")
    elif candidate.limited_by is BatchLimit.KV_CACHE:
        yield (
            f"The KV cache stops the batch at {candidate.batch} requests of {length} tokens, where "
            f"TPOT is {duration(candidate.tpot)}."
        )


def _prefills(candidate: Candidate) -> Iterator[str]:
    taken = candidate.point.prefill_share / candidate.tpot
    if taken >= WORTH_SAYING:
        yield f"Prefills of other requests take {percent(taken)} of the time per token."


def _overheads(candidate: Candidate) -> Iterator[str]:
    taken = share(candidate.decode, *_OVERHEAD)
    if taken >= WORTH_SAYING:
        yield f"Overheads that more GPUs do not shorten take {percent(taken)} of the step."


def _idle(candidate: Candidate) -> Iterator[str]:
    if candidate.idle_gpus:
        yield f"{counted(candidate.idle_gpus, 'GPU')} of {candidate.question.gpus} would idle."


def _pools(candidate: Candidate) -> Iterator[str]:
    pools = candidate.pools
    if pools is None:
        return
    rates = {
        "prefill": pools.num_prefill * pools.prefill.rate,
        "decode": pools.num_decode * pools.decode.rate,
    }
    for name, rate in rates.items():
        idle = 1 - pools.goodput / rate
        if idle >= WORTH_SAYING:
            yield f"The {name} pool could do more: {percent(idle)} of it is not used."
    yield (
        "Each request's KV cache crosses to the decode pool: "
        f"{duration(pools.prefill.transfer)} of its TTFT."
    )


def _number(count: int) -> str:
    return {2: "Two", 3: "Three", 4: "Four"}.get(count, str(count))


_FOR = (
    _alone,
    _tensor_parallel,
    _replicas,
    _stages,
    _experts,
    _latent_once,
    _keeps_limits,
    _undisturbed,
)
_AGAINST = (
    _all_reduces,
    _copies,
    _pipeline,
    _exchanges,
    _batch,
    _prefills,
    _overheads,
    _idle,
    _pools,
)
