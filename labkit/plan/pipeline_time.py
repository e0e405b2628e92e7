"""Pipeline stages in time: what passes through them, and when they idle.

`p` stages and `m` microbatches in flight. A pipeline that fills and drains (prefill, training)
idles (p-1)/(m+p-1) of the time. One that runs round and round (decode) is busy m/p of it at most.
"""

from __future__ import annotations

from types import MappingProxyType

from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.step_system import System
from labkit.plan.step_terms import STAGE_TERMS, TERMS, StepTime
from labkit.plan.step_work import element_bytes


def bubble_fraction(stages: int, microbatches: int) -> float:
    """The part of the time that equal stages idle while a pipeline fills and drains.

    Raises ValueError for fewer than one of either.
    """
    _require(stages, microbatches)
    return (stages - 1) / (microbatches + stages - 1)


def busy_fraction(stages: int, microbatches: int) -> float:
    """The part of the time that equal stages work when microbatches run round and round.

    Raises ValueError for fewer than one of either.
    """
    _require(stages, microbatches)
    return min(1.0, microbatches / stages)


def _require(stages: int, microbatches: int) -> None:
    for name, value in (("stages", stages), ("microbatches", microbatches)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")


def pipelined(
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
        terms.update(zip(STAGE_TERMS, stages[0], strict=True))
        return StepTime(MappingProxyType(terms), sum(terms.values()), tokens, tuple(busy))
    send = send_seconds(model, system, layout, part) if depth > 1 else 0.0
    each = [seconds + send * (index < depth - 1) for index, seconds in enumerate(busy)]
    passing, slowest = sum(each), max(each)
    total = (
        max(passing, rounds * slowest) if is_decode else passing + (rounds - 1) * slowest
    )  # fmt: skip
    share = rounds / depth
    terms = dict.fromkeys(TERMS, 0.0)
    for term, column in zip(STAGE_TERMS, zip(*stages, strict=True), strict=True):
        terms[term] = share * sum(column)
    terms["pipeline sends"] = share * (depth - 1) * send
    terms["pipeline bubble"] = max(0.0, total - sum(terms.values()))
    return StepTime(MappingProxyType(terms), sum(terms.values()), tokens, tuple(busy), rounds)


def send_seconds(model: ModelSpec, system: System, layout: Layout, part: float) -> float:
    link = system.stage_link(layout)
    sent = part / layout.dp * model.hidden_size * element_bytes(model)
    return link.hop_latency + sent / link.bandwidth
