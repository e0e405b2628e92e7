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
from types import MappingProxyType
from typing import TYPE_CHECKING

from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.pipeline_time import pipelined, send_seconds
from labkit.plan.step_stage import stage_seconds
from labkit.plan.step_system import IDEAL, Efficiency, Fidelity, System
from labkit.plan.step_terms import TERMS, StepTime
from labkit.plan.step_work import element_bytes, stage_works
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
        layout: of the ranks. Its replicas get GPUs beside this one, and the slowest is priced.
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
    part, element = batch / rounds, _kv_element_bytes(model, options)
    stages = _stages(model, system, layout, part, 1, context, element, running=part)
    return pipelined(model, system, layout, stages, part, rounds, batch, is_decode=True)


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
    part, element = batch / rounds, _kv_element_bytes(model, options)
    stages = _stages(model, system, layout, part, prompt_tokens, context, element, running=0)
    tokens = prompt_tokens * batch
    passing = part * prompt_tokens
    return pipelined(model, system, layout, stages, passing, rounds, tokens, is_decode=False)


def _stages(
    model: ModelSpec,
    system: System,
    layout: Layout,
    sequences: float,
    prompt: float,
    context: float,
    kv_element_bytes: float,
    running: float,
) -> list[list[float]]:
    """The seconds of each stage; equal stages are one object, and timed once."""
    works = stage_works(model, layout)
    kept: dict[int, list[float]] = {}
    for work in works:
        if id(work) not in kept:
            kept[id(work)] = stage_seconds(
                model, work, system, layout, sequences, prompt, context, kv_element_bytes, running
            )
    return [kept[id(work)] for work in works]


def _textbook(
    model: ModelSpec, system: System, layout: Layout, batch: int, parameters: float | None
) -> StepTime:
    if layout.dp > 1:
        raise ValueError(f"TEXTBOOK prices TP and PP, not DP {layout.dp}; take FULL")
    step = tp_step(
        model,
        layout.tp,
        batch,
        system.all_reduce(layout),
        parameters=model.weight_bytes / 2 if parameters is None else parameters,
        hbm_bandwidth=system.device.memory_bandwidth,
    )
    terms = dict.fromkeys(TERMS, 0.0)
    terms["weights"] = step.weight_seconds
    terms["all-reduce latency"] = step.latency_seconds
    terms["all-reduce transfer"] = step.transfer_seconds
    if layout.pp > 1:
        terms["pipeline sends"] = (layout.pp - 1) * send_seconds(model, system, layout, batch)
    seconds = sum(terms.values())
    return StepTime(MappingProxyType(terms), seconds, batch, (seconds,))


def _kv_element_bytes(model: ModelSpec, options: EngineOptions | None) -> float:
    return element_bytes(model) if options is None else options.cache_element_bytes(model)


def _require_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")


def _require_amounts(**amounts: float) -> None:
    for name, value in amounts.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} is {value!r}; it must be at least 0, and finite")
