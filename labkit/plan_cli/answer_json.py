"""Answers of the planner as JSON values. `schema.json` beside this module describes them.

Units are in the names: bytes, seconds, tokens. The schema's version rises when a field changes its
meaning or goes; new fields may come without that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labkit.plan.candidates import Candidate, Rejected
from labkit.plan.engine_flags import ENGINES, flags
from labkit.plan.layout import Layout
from labkit.plan.memory import MemoryPlan
from labkit.plan.model import ModelSpec
from labkit.plan.pareto import ParetoPoint
from labkit.plan.question import Question
from labkit.plan.search import Answer
from labkit.plan.steptime import StepTime

VERSION = 1
"""Of the schema."""


def schema() -> Mapping[str, Any]:
    """The JSON schema of every answer."""
    file = Path(__file__).with_name("schema.json")
    values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return values


def envelope(question: str, model_name: str, model: ModelSpec, body: Mapping[str, Any]) -> Any:
    """Any answer: what was asked of which model, then the rest."""
    return {
        "schema_version": VERSION,
        "question": question,
        "model": model_json(model_name, model),
        **body,
    }


def model_json(name: str, model: ModelSpec) -> Any:
    return {
        "name": name,
        "model_type": model.model_type,
        "num_layers": model.num_layers,
        "num_parameters": model.num_parameters,
        "num_active_parameters": model.num_active_parameters,
        "weight_bytes": model.weight_bytes,
        "quantization": model.quantization,
        "notes": list(model.notes),
    }


def layout_json(layout: Layout) -> Any:
    return {
        "tp": layout.tp,
        "pp": layout.pp,
        "dp": layout.dp,
        "ep": layout.ep,
        "replicas": layout.replicas,
        "gpus": layout.world_size,
    }


def memory_json(plan: MemoryPlan) -> Any:
    return {
        "fits": plan.fits,
        "reason": plan.reason,
        "kv_tokens": plan.kv_tokens,
        "kv_blocks": plan.kv_blocks,
        "replica_kv_tokens": plan.replica_kv_tokens,
        "limiting_stage": plan.limiting_stage,
        "stages": [
            {
                "stage": stage.stage,
                "layers": [stage.layers.start, stage.layers.stop],
                "usable_bytes": stage.usable_bytes,
                "parts_bytes": dict(stage.parts),
                "kv_bytes_per_token": stage.kv_bytes_per_token,
                "state_bytes_per_sequence": stage.state_bytes_per_sequence,
                "kv_blocks": stage.kv_blocks,
            }
            for stage in plan.stages
        ],
    }


def step_json(step: StepTime) -> Any:
    return {"seconds": step.seconds, "terms_seconds": dict(step.terms)}


def search_json(answer: Answer, model_name: str, top: int, engines: tuple[str, ...]) -> Any:
    """The answer of a search: all of it but the flags, which only the first `top` layouts carry."""
    return {
        **_asked(answer.question),
        "objective": answer.objective,
        "notes": list(answer.notes),
        "ranked": [
            _candidate(one, model_name, engines if rank < top else ())
            for rank, one in enumerate(answer.ranked)
        ],
        "pareto": [_pareto(point) for point in answer.pareto],
        "rejected": [_rejected(one) for one in answer.rejected],
    }


def _asked(question: Question) -> Any:
    return {
        "device": question.device.name,
        "gpus": question.gpus,
        "prompt_tokens": question.prompt_tokens,
        "output_tokens": question.output_tokens,
        "slo": {"ttft_seconds": question.slo.ttft, "tpot_seconds": question.slo.tpot},
        "links": {"inside": question.links.inside.name, "between": question.links.between.name},
        "efficiency": question.efficiency.source or "the data sheet in full",
    }


def _candidate(one: Candidate, model_name: str, engines: tuple[str, ...]) -> Any:
    prefill = one.prefill_layout
    return {
        "title": one.title,
        "layout": layout_json(one.layout),
        "prefill_layout": None if prefill is None else layout_json(prefill),
        "batch": one.batch,
        "batch_limited_by": one.limited_by.value,
        "tpot_seconds": one.tpot,
        "ttft_seconds": one.ttft,
        "request_seconds": one.request_seconds,
        "tokens_per_second": one.tokens_per_second,
        "tokens_per_second_per_gpu": one.tokens_per_second_per_gpu,
        "cost_per_million_output_tokens": one.cost_per_million,
        "kv_tokens": one.kv_tokens,
        "idle_gpus": one.idle_gpus,
        "decode": step_json(one.decode),
        "prefill": None if one.prefill is None else step_json(one.prefill),
        "memory": memory_json(one.memory),
        "reasons_for": list(one.reasons_for),
        "reasons_against": list(one.reasons_against),
        "flags": {engine: flags(engine, one, model_name) for engine in engines},
    }


def _pareto(point: ParetoPoint) -> Any:
    prefill = point.prefill_layout
    return {
        "layout": layout_json(point.layout),
        "prefill_layout": None if prefill is None else layout_json(prefill),
        "batch": point.batch,
        "tpot_seconds": point.tpot,
        "ttft_seconds": point.ttft,
        "tokens_per_second_per_gpu": point.tokens_per_second_per_gpu,
    }


def _rejected(one: Rejected) -> Any:
    return {
        "title": one.title,
        "layout": layout_json(one.layout),
        "cause": one.cause.value,
        "reasons": list(one.reasons),
        "best_tpot_seconds": None if one.best is None else one.best.tpot,
    }


def engines_of(engine: str | None) -> tuple[str, ...]:
    """The engines whose flags are wanted."""
    return ENGINES if engine is None else (engine,)
