"""The servers that a candidate takes: the batches, lengths and memory shares to tell an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from labkit.plan.candidates import Candidate
from labkit.plan.engine_options import EngineOptions
from labkit.plan.layout import Layout
from labkit.plan.memory import plan_memory


@dataclass(frozen=True)
class Server:
    """One server to start.

    Attributes:
        layout: of one replica.
        sequences: of each copy of attention, at most.
        model_dtype: of the checkpoint, and of the KV cache unless `options` says otherwise.
        role: "prefill" or "decode" in a pool of its own; "" where it does both.
        static_share: of a GPU's memory, for weights and KV cache.
        free_share: of what weights, activations and runtime leave, for the KV cache.
    """

    model: str
    layout: Layout
    sequences: int
    length: int
    options: EngineOptions
    static_share: float
    free_share: float
    model_dtype: str
    role: str = ""


def servers(candidate: Candidate, model: str) -> list[tuple[Server, Layout]]:
    """The servers of a candidate, with the layouts that say how many of each: prefill first."""
    layout, question = candidate.layout, candidate.question
    sequences = -(-candidate.batch // layout.dp)
    if candidate.pools is None or candidate.prefill_layout is None:
        return [(_server(candidate, layout, sequences, model), layout)]
    prompts = max(1, question.engine.max_num_batched_tokens // question.prompt_tokens)
    ahead = _server(candidate, candidate.prefill_layout, prompts, model, "prefill")
    return [
        (ahead, candidate.prefill_layout),
        (_server(candidate, layout, sequences, model, "decode"), layout),
    ]


def _server(
    candidate: Candidate, layout: Layout, sequences: int, model: str, role: str = ""
) -> Server:
    question = candidate.question
    alone = replace(layout, replicas=1)
    memory = plan_memory(question.model, question.device, alone, question.engine)
    stage = memory.stages[memory.limiting_stage]
    total = question.device.memory_bytes
    return Server(
        model=model,
        layout=alone,
        sequences=sequences,
        length=question.length,
        options=question.engine,
        static_share=(stage.total_weight_bytes + stage.kv_pool_bytes) / total,
        free_share=stage.kv_pool_bytes / (total - stage.taken_bytes),
        model_dtype=question.model.dtype,
        role=role,
    )
