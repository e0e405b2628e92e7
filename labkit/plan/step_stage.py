"""One pipeline stage's share of a step, on its busiest rank."""

from __future__ import annotations

from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.step_system import System
from labkit.plan.step_work import StageWork, element_bytes


def stage_seconds(
    model: ModelSpec,
    work: StageWork,
    system: System,
    layout: Layout,
    sequences: float,
    prompt: float,
    context: float,
    kv_element_bytes: float,
    running: float,
) -> list[float]:
    """The seconds of one stage for one microbatch, in the order of `STAGE_TERMS`.

    Args:
        sequences: of all copies of attention together; each gets one row of logits.
        prompt: tokens of each that pass now; 1 in decode.
        context: tokens of each that are in the caches already.
        running: sequences that cost `sequence_overhead`, each copy of attention its own; none in
            prefill.
    """
    efficiency = system.efficiency
    bandwidth = efficiency.memory * system.device.memory_bandwidth
    tokens = sequences * prompt
    own_sequences = max(sequences / layout.dp, min(1.0, sequences))
    own = own_sequences * prompt
    reading = work.weight_bytes / bandwidth
    products = sum(own * flops / system.peak(dtype) for dtype, flops in work.flops)
    if work.head_flops[1]:
        products += own_sequences * work.head_flops[1] / system.peak(work.head_flops[0])
    beyond = max(0.0, products - reading)
    for expert in work.experts:
        read = expert.count * expert.touched(tokens) * expert.bytes_each / bandwidth
        share = tokens * expert.top_k / layout.ep / efficiency.balancedness
        reading += read
        computing = expert.count * share * expert.flops_each / system.peak(expert.dtype)
        beyond += max(0.0, computing - read)
    caches = 0.0
    score_peak = system.peak(model.dtype)
    for cache in work.caches:
        kept = cache.kept(context) * cache.elements * kv_element_bytes + 2 * cache.state_bytes
        read = own_sequences * kept / bandwidth
        looked = own_sequences * cache.looked_at(prompt, context)
        caches += read
        beyond += max(0.0, looked * cache.score_flops / score_peak - read)
    element = element_bytes(model)
    payload = own * model.hidden_size * element
    reduce = system.all_reduce(layout).terms(layout.tp, payload)
    exchange = _exchange_seconds(model, work, system, layout, tokens)
    if work.moe_layers and layout.tp > 1:
        exchange += reduce.seconds / 2  # each DP copy gathers its tokens again: half an all-reduce
    gather = 0.0
    if work.gather_bytes and layout.tp > 1:
        gather = system.all_reduce(layout).seconds(layout.tp, own_sequences * work.gather_bytes / 2)
    return [
        reading,
        caches,
        beyond,
        own * work.activation_bytes / bandwidth,
        work.all_reduces * reduce.latency_seconds,
        work.all_reduces * reduce.transfer_seconds,
        work.moe_layers * exchange,
        gather,
        work.num_layers * efficiency.layer_overhead,
        efficiency.step_overhead / layout.pp,
        running / layout.dp * efficiency.sequence_overhead / layout.pp,
    ]


def _exchange_seconds(
    model: ModelSpec, work: StageWork, system: System, layout: Layout, tokens: float
) -> float:
    """Of one MoE layer: tokens to the ranks of their experts, and what these make of them back."""
    if not work.moe_layers:
        return 0.0
    ranks = layout.stage_size
    top_k = max(expert.top_k for expert in work.experts)
    copies = min(top_k * layout.expert_tp, ranks)
    element = element_bytes(model)
    sent = tokens / ranks * copies * model.hidden_size * element
    return 2 * system.all_to_all(layout).seconds(ranks, sent / system.efficiency.balancedness)
