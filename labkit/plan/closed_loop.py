"""What clients see who each send the next request when the last one ends (modelled).

An engine runs as many sequences as its KV cache holds; the other clients wait. A sequence that
ends makes room for a prompt, and while a sequence lives, each of the others is replaced about once:
their prefills, one each, lengthen its steps. Where clients wait, sequences that grow push others
out again (preemption): that part of the waiting falls between tokens, the rest before the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.plan.model import ModelSpec
from labkit.plan.serving_rows import ServingRow
from labkit.plan.steptime import StepTime, System, decode_step, prefill_step

if TYPE_CHECKING:
    from labkit.plan.engine_options import EngineOptions

_SHARED_TERMS = ("compute", "activations", "all-reduce transfer", "all-to-all", "pipeline sends")
"""What a prefill adds to a step that runs anyway; latencies and overheads are paid once."""


@dataclass(frozen=True)
class LoopTime:
    """Seconds, except where said.

    Attributes:
        running: sequences in a step.
        decode: the step without prefills.
        prefill: of one prompt alone.
        prefill_share: of `tpot`, that prefills in the same steps take.
        stall: of `tpot`, that preempted sequences wait.
        waiting: of a request, for room in the KV cache.
        ttft, tpot: means, as a client measures them.
    """

    running: int
    decode: StepTime
    prefill: StepTime
    prefill_share: float
    stall: float
    waiting: float
    ttft: float
    tpot: float

    @property
    def output_tokens_per_second(self) -> float:
        """Of the replica, while all its sequences decode."""
        return self.running / (self.decode.seconds + self.prefill_share)


def closed_loop(
    model: ModelSpec,
    system: System,
    load: ServingRow,
    capacity: int | None = None,
    options: EngineOptions | None = None,
) -> LoopTime:
    """What the clients of `load` see; the times it carries are not looked at.

    Args:
        capacity: sequences of mean length that the KV caches of all copies of attention hold
            together; None for no limit.
        options: for the KV cache's dtype.

    Raises:
        ValueError: the KV cache holds no sequence.
    """
    if capacity is not None and capacity < 1:
        raise ValueError(
            f"capacity is {capacity} sequences of {load.mean_context:.0f} tokens; it must be at "
            "least 1: take more GPUs or shorter sequences"
        )
    running = load.concurrency if capacity is None else min(load.concurrency, capacity)
    prompt, output, layout = load.mean_prompt, load.mean_output, load.layout
    decode = decode_step(model, system, layout, running, load.mean_context, options)
    prefill = prefill_step(model, system, layout, prompt, layout.dp, options=options)
    others = max(0.0, running / layout.dp - 1)
    joined = joined_seconds(prefill, decode, others / output)
    tpot = with_prefills(decode.seconds, joined, output, prefill.seconds)
    life = output * tpot + prefill.seconds
    waiting = (load.concurrency / running - 1) * life
    grown = (output / 2) / load.mean_context
    first_wave = others / 2 * prefill.seconds / load.requests_per_client
    return LoopTime(
        running=running,
        decode=decode,
        prefill=prefill,
        prefill_share=tpot - decode.seconds,
        stall=grown * waiting / output,
        waiting=waiting,
        ttft=(
            system.efficiency.request_overhead
            + decode.seconds / 2
            + prefill.seconds
            + first_wave
            + (1 - grown) * waiting
        ),
        tpot=tpot + grown * waiting / output,
    )


def joined_seconds(prefill: StepTime, decode: StepTime, each_step: float = 1.0) -> float:
    """What prefills add to a decode step that they share, so many of them to `each_step`.

    A prompt's tokens use experts that the few of decode leave alone. However many prompts share a
    pass through the weights it reads these once, and a step has as many passes as microbatches;
    so more clients, who leave fewer experts alone, never make a step shorter.
    """
    passes, rounds = prefill.microbatches, decode.microbatches
    more_weights = prefill.terms["weights"] / passes - decode.terms["weights"] / rounds
    reading = min(each_step * passes, rounds) * max(0.0, more_weights)
    return reading + each_step * sum(prefill.terms[term] for term in _SHARED_TERMS)


def with_prefills(step: float, added: float, output: int, prefill: float) -> float:
    """The step with the prefills of others: they come while a sequence decodes, and while it is
    prefilled itself. Solves  t = step + added * output t / (output t + prefill)."""
    linear = prefill - output * (step + added)
    root = math.sqrt(linear * linear + 4 * output * step * prefill)
    return max(step, (root - linear) / (2 * output))
