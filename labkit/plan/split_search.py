"""Prefill and decode in pools of their own: which layout for each, and how many of each.

The two limits size the pools: TTFT that of prefill, TPOT that of decode. For each number of GPUs
the worker with the highest rate is kept, then every pair of them is matched by
`labkit.plan.disaggregation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from labkit.plan.candidates import Candidate
from labkit.plan.disaggregation import (
    DecodeWorker,
    PrefillWorker,
    Workload,
    match_pools,
)
from labkit.plan.fitting_layout import FittingLayout
from labkit.plan.kv_transfer import transfer_seconds
from labkit.plan.prefill_queue import largest_rate
from labkit.plan.question import Question
from labkit.plan.serving_point import (
    BatchLimit,
    ServingPoint,
    largest_point,
    prompt_step,
    serving_points,
)


@dataclass(frozen=True)
class _Decoder:
    """A decode worker and where it comes from."""

    fitting: FittingLayout
    point: ServingPoint
    limit: BatchLimit
    worker: DecodeWorker


def splits(question: Question, fitting: Sequence[FittingLayout]) -> Iterator[Candidate]:
    """The best pair of pools for each pair of worker sizes.

    The question has both limits: `Question` refuses others.
    """
    slo = question.slo
    assert slo.ttft is not None
    assert slo.tpot is not None
    load = Workload(question.prompt_tokens, question.output_tokens, slo.ttft, slo.tpot)
    decoders = _best_decoders(question, fitting)
    prefillers = _best_prefillers(question, fitting)
    for prefiller in prefillers.values():
        for decoder in decoders.values():
            spare = slo.ttft - prefiller.step.seconds - prefiller.transfer
            rate = _rate(prefiller, spare - decoder.point.tpot)
            if rate <= 0 or prefiller.gpus + decoder.worker.gpus > question.gpus:
                continue
            pools = match_pools(replace(prefiller, rate=rate), decoder.worker, load, question.gpus)
            yield Candidate(
                question,
                replace(decoder.fitting.layout, replicas=pools.num_decode),
                decoder.fitting.memory,
                decoder.point,
                decoder.limit,
                pools,
            )


def _best_decoders(question: Question, fitting: Sequence[FittingLayout]) -> dict[int, _Decoder]:
    """The decode worker with the highest rate for each number of GPUs."""
    best: dict[int, _Decoder] = {}
    for each in fitting:
        room = each.room(question.length)
        if room < 1:
            continue
        points = serving_points(question, each.layout, own_prefill=False)
        point, limit = largest_point(question, points, room)
        rate = point.batch / (question.output_tokens * point.tpot)
        if question.slo.misses(None, point.tpot):
            continue
        worker = DecodeWorker(each.layout, point.decode, point.batch, rate)
        size = worker.gpus
        if size not in best or _is_better(worker, best[size].worker):
            best[size] = _Decoder(each, point, limit, worker)
    return best


def _best_prefillers(
    question: Question, fitting: Sequence[FittingLayout]
) -> dict[int, PrefillWorker]:
    """The prefill worker with the highest rate for each number of GPUs, decode not counted."""
    best: dict[int, PrefillWorker] = {}
    links, slo = question.links, question.slo
    link = links.inside if question.gpus <= links.gpus_per_node else links.between
    assert slo.ttft is not None
    for each in fitting:
        layout = each.layout
        step = prompt_step(question, layout)
        moved = transfer_seconds(
            question.model,
            question.prompt_tokens,
            link,
            links=layout.tp * layout.pp,
            kv_bytes_per_element=question.engine.cache_element_bytes(question.model),
        )
        worker = PrefillWorker(layout, step, moved, 0.0)
        worker = replace(worker, rate=_rate(worker, slo.ttft - step.seconds - moved))
        size = worker.gpus
        if worker.rate > 0 and (size not in best or _is_better(worker, best[size])):
            best[size] = worker
    return best


def _is_better(worker: PrefillWorker | DecodeWorker, kept: PrefillWorker | DecodeWorker) -> bool:
    """By the rate; of equals the one that keeps experts whole."""
    return (worker.rate, -worker.layout.expert_tp) > (kept.rate, -kept.layout.expert_tp)


def _rate(worker: PrefillWorker, spare: float) -> float:
    """Prompts a second at which they wait `spare` seconds on average: each copy of attention takes
    one at a time."""
    return largest_rate(worker.step.seconds, spare, worker.layout.dp)
