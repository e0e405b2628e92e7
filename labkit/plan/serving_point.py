"""One layout at one batch as its clients see it, and the largest batch that an SLO allows.

Every sequence that ends makes room for a prompt, whose prefill lengthens the steps of the others:
`labkit.plan.closed_loop` says by how much. The KV cache holds every running request whole, so none
waits and none is pushed out. By Little's law the tokens per second are the sequences times the
tokens of a request over the time of a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from labkit.plan.closed_loop import joined_seconds, with_prefills
from labkit.plan.layout import Layout
from labkit.plan.question import Question
from labkit.plan.steptime import StepTime, decode_step, prefill_step


class BatchLimit(Enum):
    """What keeps a batch from growing."""

    SLO = "the SLO"
    KV_CACHE = "the KV cache"
    GIVEN = "the question"
    """The batch was given, or nothing limits it and one sequence for each copy was taken."""


@dataclass(frozen=True)
class ServingPoint:
    """One replica of a layout at one batch; seconds, modelled.

    Attributes:
        batch: sequences of the replica.
        decode: a step without prefills.
        prefill: of one prompt in each copy of attention; None where it is not modelled.
        tpot: between two tokens of a sequence, prefills of others included.
        ttft: to the first token, without queueing; None where prefill is not modelled.
        request_seconds: of a whole request.
        tokens_per_second: output tokens of the replica.
    """

    batch: int
    decode: StepTime
    prefill: StepTime | None
    tpot: float
    ttft: float | None
    request_seconds: float
    tokens_per_second: float

    @property
    def prefill_share(self) -> float:
        """Of `tpot`, what prefills of other requests take."""
        return self.tpot - self.decode.seconds


class Points(Protocol):
    """The points of one layout."""

    def __call__(self, sequences: int, batch: int | None = None) -> ServingPoint:
        """With so many sequences in each copy of attention; `batch` of the replica, if fewer than
        the copies could take."""


def serving_points(question: Question, layout: Layout, *, own_prefill: bool = True) -> Points:
    """The points of one layout, by sequences in each copy of attention.

    own_prefill: whether the same GPUs prefill; without it decode runs undisturbed, as in a pool of
    its own, and the point has no TTFT.
    """
    prefill = prompt_step(question, layout) if own_prefill and question.has_prefill else None

    def point(sequences: int, batch: int | None = None) -> ServingPoint:
        full = sequences * layout.dp
        decode = decode_step(
            question.model, question.system, layout, full, question.context, question.options
        )
        return _point(question, batch or full, sequences, decode, prefill)

    return point


def prompt_step(question: Question, layout: Layout) -> StepTime:
    """The prefill of one prompt in each copy of attention, in chunks of what a step takes."""
    chunks = -(-question.prompt_tokens // question.engine.max_num_batched_tokens)
    tokens = -(-question.prompt_tokens // chunks)
    return prefill_step(
        question.model,
        question.system,
        layout,
        tokens,
        chunks * layout.dp,
        context=(chunks - 1) / 2 * tokens,
        options=question.options,
        microbatches=chunks,
    )


def _point(
    question: Question, batch: int, sequences: int, decode: StepTime, prefill: StepTime | None
) -> ServingPoint:
    output = question.output_tokens
    if prefill is None:
        tpot, ttft, whole = decode.seconds, None, output * decode.seconds
    else:
        added = joined_seconds(prefill, decode, (sequences - 1) / output)
        tpot = with_prefills(decode.seconds, added, output, prefill.seconds)
        ttft = decode.seconds / 2 + prefill.seconds
        whole = ttft + (output - 1) * tpot
    return ServingPoint(batch, decode, prefill, tpot, ttft, whole, batch * output / whole)


def largest_point(question: Question, points: Points, most: int) -> tuple[ServingPoint, BatchLimit]:
    """The point with the most sequences that keeps the SLO, and what stops it from having more.

    Where one sequence in each copy breaks the SLO already, that point.

    Args:
        most: sequences that the KV cache of one copy of attention holds, 1 at least.
    """
    lowest = points(1)
    if most == 1 or not _is_met(question, lowest):
        return lowest, BatchLimit.KV_CACHE if most == 1 else BatchLimit.SLO
    highest = points(most)
    if _is_met(question, highest):
        return highest, BatchLimit.KV_CACHE
    good, bad, best, worst = 1, most, lowest, highest
    halve = False
    while bad - good > 1:
        guess = (good + bad) // 2 if halve else _interpolated(question, good, bad, best, worst)
        found = points(guess)
        before = bad - good
        if _is_met(question, found):
            good, best = guess, found
        else:
            bad, worst = guess, found
        halve = bad - good > before // 2
    return best, BatchLimit.SLO


def _is_met(question: Question, point: ServingPoint) -> bool:
    if point.ttft is None:
        return question.slo.tpot is None or point.tpot <= question.slo.tpot
    return question.slo.is_met(point.ttft, point.tpot)


def _interpolated(
    question: Question, good: int, bad: int, best: ServingPoint, worst: ServingPoint
) -> int:
    """Where TPOT would meet its limit if it rose evenly, strictly between the two."""
    limit = question.slo.tpot
    if limit is None or worst.tpot <= limit:
        return (good + bad) // 2
    share = (limit - best.tpot) / (worst.tpot - best.tpot)
    return min(max(good + int(share * (bad - good)), good + 1), bad - 1)
