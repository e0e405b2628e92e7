"""How long a prefill or decode step takes, term by term (modelled).

    decode = weights + KV cache + what computing takes beyond reading + activations
             + all-reduces + all-to-alls + pipeline + overheads

Reading goes at `efficiency.memory` of the memory bandwidth, products at `efficiency.compute` of the
peak. Of weights and products, and of caches and scores, the longer one counts. The busiest rank of
each stage sets its time. With pipeline stages each term is the time an average stage spends on it;
the rest of the time it idles, which is the bubble. So the terms always sum to the seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.step_system import IDEAL, Efficiency, Fidelity, System
from labkit.plan.step_work import StageWork, stage_works
from labkit.plan.tp_steps import tp_step

if TYPE_CHECKING:
    from labkit.plan.engine_options import EngineOptions

__all__ = [
    "IDEAL",
    "TERMS",
    "Efficiency",
    "Fidelity",
    "StepTime",
    "System",
    "decode_step",
    "prefill_step",
]

TERMS = (
    "weights",
    "KV cache",
    "compute",
    "activations",
    "all-reduce latency",
    "all-reduce transfer",
    "all-to-all",
    "logits gather",
    "pipeline sends",
    "pipeline bubble",
    "layer overhead",
    "step overhead",
    "sequence overhead",
)
"""The terms of a step, in order. "compute" is what computing takes beyond reading."""
_STAGE_TERMS = tuple(term for term in TERMS if not term.startswith("pipeline"))


@dataclass(frozen=True)
class StepTime:
    """One step of one replica.

    Attributes:
        terms: seconds by the name of the term, all of `TERMS`, in their order.
        seconds: their sum. For decode the time between two tokens of a sequence; for prefill until
            the prompts' first tokens.
        tokens: that the step brings: one a sequence in decode, those of the prompts in prefill.
        stage_seconds: of each pipeline stage, for one microbatch.
        microbatches: in flight.
    """

    terms: Mapping[str, float]
    seconds: float
    tokens: int
    stage_seconds: tuple[float, ...]
    microbatches: int = 1

    @property
    def tokens_per_second(self) -> float:
        """Of the replica."""
        return self.tokens / self.seconds

    @property
    def utilization(self) -> float:
        """The part of the time that an average stage does not idle; m/p at most."""
        return 1 - self.terms["pipeline bubble"] / self.seconds

    @property
    def longest_term(self) -> str:
        """The name of the largest term."""
        return max(self.terms, key=self.terms.__getitem__)


def decode_step(
    model: ModelSpec,
    system: System,
    layout: Layout | None = None,
    batch: int = 1,
    context: float = 0,
    options: EngineOptions | None = None,
    *,
    microbatches: int | None = None,
    parameters: float | None = None,
) -> StepTime:
    """One token for each of `batch` sequences that one replica runs.

    Args:
        layout: of the ranks; its replicas do not matter here.
        batch: sequences of the replica; each of its DP copies of attention has its share.
        context: tokens in front of the new one, on average.
        options: for the KV cache's dtype; None keeps it in the model's.
        microbatches: that the batch is cut into with pipeline stages; as many as stages by default.
        parameters: TEXTBOOK only: weights to read, where a round number is wanted.

    Raises:
        ValueError: a size out of its range, by name.
    """
    layout = layout or Layout()
    _require_sizes(batch=batch)
    _require_amounts(context=context)
    rounds = min(layout.pp, batch) if microbatches is None else microbatches
    _require_sizes(microbatches=rounds)
    if system.fidelity is Fidelity.TEXTBOOK:
        return _textbook(model, system, layout, batch, parameters)
    if parameters is not None:
        raise ValueError("parameters belongs to TEXTBOOK; FULL counts the weights of the model")
    part = batch / rounds
    works = stage_works(model, layout)
    element = _kv_element_bytes(model, options)
    stages = [
        _stage(model, work, system, layout, part, part, part * context, part, element)
        for work in works
    ]
    return _pipelined(model, system, layout, stages, part, rounds, batch, is_decode=True)


def prefill_step(
    model: ModelSpec,
    system: System,
    layout: Layout | None = None,
    prompt_tokens: int = 1,
    batch: int = 1,
    context: float = 0,
    options: EngineOptions | None = None,
    *,
    microbatches: int | None = None,
) -> StepTime:
    """`batch` prompts of `prompt_tokens` tokens each through one replica, to their first tokens.

    Args:
        context: tokens of each prompt that are cached already, or came in earlier chunks.
        microbatches: that the prompts are cut into with pipeline stages; one a prompt by default.
            More than `batch` cuts prompts into chunks.

    Latent attention is priced as decode runs it, on the latent; an engine that expands keys and
    values for long prompts needs fewer FLOPs.

    Raises:
        ValueError: a size out of its range, by name.
    """
    layout = layout or Layout()
    _require_sizes(prompt_tokens=prompt_tokens, batch=batch)
    _require_amounts(context=context)
    rounds = (batch if layout.pp > 1 else 1) if microbatches is None else microbatches
    _require_sizes(microbatches=rounds)
    if system.fidelity is Fidelity.TEXTBOOK:
        raise ValueError("TEXTBOOK knows decode alone: it counts no FLOPs; take FULL for prefill")
    tokens = prompt_tokens * batch
    part, sequences = tokens / rounds, batch / rounds
    element = _kv_element_bytes(model, options)
    stages = [
        _stage(model, work, system, layout, part, sequences, sequences * context, 0.0, element,
               prompt=prompt_tokens, context=context)
        for work in stage_works(model, layout)
    ]  # fmt: skip
    return _pipelined(model, system, layout, stages, part, rounds, tokens, is_decode=False)


def _stage(
    model: ModelSpec,
    work: StageWork,
    system: System,
    layout: Layout,
    tokens: float,
    sequences: float,
    cached_tokens: float,
    running: float,
    kv_element_bytes: float,
    *,
    prompt: float = 1.0,
    context: float | None = None,
) -> list[float]:
    """The seconds of one stage for one microbatch, in the order of `_STAGE_TERMS`.

    tokens, sequences, cached_tokens: of the microbatch, over all copies of attention.
    """
    device, efficiency = system.device, system.efficiency
    bandwidth = efficiency.memory * device.memory_bandwidth
    copies = layout.dp
    own, own_sequences = tokens / copies, sequences / copies
    if context is None:
        context = cached_tokens / sequences
    reading = work.weight_bytes / bandwidth
    products = sum(
        own * flops / (efficiency.of_compute(dtype) * device.flops(dtype))
        for dtype, flops in work.flops
    )
    dtype, flops = work.head_flops
    products += own_sequences * flops / (efficiency.of_compute(dtype) * device.flops(dtype))
    beyond = max(0.0, products - reading)
    for expert in work.experts:
        read = expert.count * expert.touched(tokens) * expert.bytes_each / bandwidth
        share = tokens * expert.top_k / layout.ep / efficiency.balancedness
        peak = efficiency.of_compute(expert.dtype) * device.flops(expert.dtype)
        reading += read
        beyond += max(0.0, expert.count * share * expert.flops_each / peak - read)
    caches = 0.0
    score_peak = efficiency.of_compute(model.dtype) * device.flops(model.dtype)
    for cache in work.caches:
        kept = cache.kept(context) * cache.elements * kv_element_bytes + 2 * cache.state_bytes
        read = own_sequences * kept / bandwidth
        looked = own_sequences * cache.looked_at(prompt, context)
        caches += read
        beyond += max(0.0, looked * cache.score_flops / score_peak - read)
    element = 4 if model.dtype == "float32" else 2
    payload = own * model.hidden_size * element
    reduce = system.all_reduce(layout.tp, layout.pp).terms(layout.tp, payload)
    exchange = _exchange_seconds(model, work, system, layout, tokens)
    if work.moe_layers and layout.tp > 1:
        exchange += reduce.seconds / 2  # each DP copy gathers its tokens again: half an all-reduce
    gather = 0.0
    if work.gather_bytes and layout.tp > 1:
        gather = system.all_reduce(layout.tp, layout.pp).seconds(
            layout.tp, own_sequences * work.gather_bytes / 2
        )
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
        running * efficiency.sequence_overhead / layout.pp,
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
    element = 4 if model.dtype == "float32" else 2
    sent = tokens / ranks * copies * model.hidden_size * element
    return 2 * system.all_to_all(ranks, sent / system.efficiency.balancedness).seconds


def _pipelined(
    model: ModelSpec,
    system: System,
    layout: Layout,
    stages: list[list[float]],
    part: float,
    rounds: int,
    tokens: int,
    *,
    is_decode: bool,
) -> StepTime:
    busy = [sum(stage) for stage in stages]
    depth = len(stages)
    if depth == 1 and rounds == 1:
        terms = dict.fromkeys(TERMS, 0.0)
        terms.update(zip(_STAGE_TERMS, stages[0], strict=True))
        return StepTime(MappingProxyType(terms), sum(terms.values()), tokens, tuple(busy))
    send = _send_seconds(model, system, layout, part) if depth > 1 else 0.0
    each = [seconds + send * (index < depth - 1) for index, seconds in enumerate(busy)]
    passing, slowest = sum(each), max(each)
    total = (
        max(passing, rounds * slowest) if is_decode else passing + (rounds - 1) * slowest
    )  # fmt: skip
    share = rounds / depth
    terms = dict.fromkeys(TERMS, 0.0)
    for index, term in enumerate(_STAGE_TERMS):
        terms[term] = share * sum(stage[index] for stage in stages)
    terms["pipeline sends"] = share * (depth - 1) * send
    terms["pipeline bubble"] = max(0.0, total - sum(terms.values()))
    return StepTime(MappingProxyType(terms), sum(terms.values()), tokens, tuple(busy), rounds)


def _send_seconds(model: ModelSpec, system: System, layout: Layout, part: float) -> float:
    link = system.stage_link(layout.stage_size, layout.pp)
    element = 4 if model.dtype == "float32" else 2
    sent = part / layout.dp * model.hidden_size * element
    return link.hop_latency + sent / link.bandwidth


def _textbook(
    model: ModelSpec, system: System, layout: Layout, batch: int, parameters: float | None
) -> StepTime:
    if layout.dp > 1:
        raise ValueError(f"TEXTBOOK prices TP and PP, not DP {layout.dp}; take FULL")
    step = tp_step(
        model,
        layout.tp,
        batch,
        system.all_reduce(layout.tp, layout.pp),
        parameters=model.weight_bytes / 2 if parameters is None else parameters,
        hbm_bandwidth=system.device.memory_bandwidth,
    )
    terms = dict.fromkeys(TERMS, 0.0)
    terms["weights"] = step.weight_seconds
    terms["all-reduce latency"] = step.latency_seconds
    terms["all-reduce transfer"] = step.transfer_seconds
    if layout.pp > 1:
        terms["pipeline sends"] = (layout.pp - 1) * _send_seconds(model, system, layout, batch)
    seconds = sum(terms.values())
    return StepTime(MappingProxyType(terms), seconds, batch, (seconds,))


def _kv_element_bytes(model: ModelSpec, options: EngineOptions | None) -> float:
    chosen = "auto" if options is None else options.kv_cache_dtype
    if chosen == "auto":
        return 4.0 if model.dtype == "float32" else 2.0
    return 1.0 if chosen.startswith("fp8") or chosen == "int8" else 2.0


def _require_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")


def _require_amounts(**amounts: float) -> None:
    for name, value in amounts.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} is {value!r}; it must be at least 0, and finite")
