"""Prefill and decode on GPUs of their own: how many of each, and what they answer in time.

Goodput counts the requests that meet both limits: TTFT (queue + prefill + KV transfer + one decode
step) and TPOT. A prefill worker takes one prompt at a time; a decode worker runs as many sequences
as TPOT and its KV cache allow. Pools match when both serve the same rate; where whole workers do
not match, the slower pool sets the goodput.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.plan.kv_transfer import transfer_seconds
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.prefill_queue import largest_rate, open_queue_wait
from labkit.plan.steptime import StepTime, System, decode_step, prefill_step

if TYPE_CHECKING:
    from labkit.plan.engine_options import EngineOptions
    from labkit.plan.hardware import LinkSpec


@dataclass(frozen=True)
class Workload:
    """What each request brings, and the limits it must keep; seconds.

    Raises ValueError, by the field's name, for a number that is not above 0.
    """

    prompt_tokens: int
    output_tokens: int
    ttft: float
    tpot: float

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "output_tokens", "ttft", "tpot"):
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"{name} is {value!r}; it must be above 0")


@dataclass(frozen=True)
class PrefillWorker:
    """step: of one prompt in each copy of attention. transfer: of one prompt's caches. rate:
    requests a second at which the mean TTFT just meets its limit; 0 where no rate does."""

    layout: Layout
    step: StepTime
    transfer: float
    rate: float

    @property
    def gpus(self) -> int:
        return self.layout.replica_size


@dataclass(frozen=True)
class DecodeWorker:
    """batch: sequences it runs within TPOT; 0 where one is too many. rate: requests a second."""

    layout: Layout
    step: StepTime
    batch: int
    rate: float

    @property
    def gpus(self) -> int:
        return self.layout.replica_size


@dataclass(frozen=True)
class Pools:
    """So many workers of each kind.

    goodput: requests a second that keep both limits. ttft, tpot: means at that rate; where prefill
    is the slower pool its queue is as long as the limit allows.
    """

    prefill: PrefillWorker
    decode: DecodeWorker
    num_prefill: int
    num_decode: int
    goodput: float
    ttft: float
    tpot: float

    @property
    def gpus(self) -> int:
        """Of both pools."""
        return self.num_prefill * self.prefill.gpus + self.num_decode * self.decode.gpus

    @property
    def goodput_per_gpu(self) -> float:
        return self.goodput / self.gpus

    @property
    def bound_by(self) -> str:
        """The pool that sets the goodput: "prefill" or "decode"."""
        slower = self.num_prefill * self.prefill.rate <= self.num_decode * self.decode.rate
        return "prefill" if slower else "decode"


def prefill_worker(
    model: ModelSpec,
    system: System,
    layout: Layout,
    workload: Workload,
    link: LinkSpec,
    *,
    links: int = 1,
    decode_seconds: float = 0.0,
    options: EngineOptions | None = None,
) -> PrefillWorker:
    """One prefill worker, and the rate its TTFT limit allows.

    link, links: that carry the caches away, see `kv_transfer.transfer_seconds`.
    decode_seconds: of the decode step that brings the first token's successor; part of TTFT.
    options: for the KV cache's dtype, in which the caches are read and sent.
    """
    prompts = layout.dp
    step = prefill_step(
        model, system, layout, workload.prompt_tokens, prompts, options=options, microbatches=1
    )
    element = None if options is None else options.cache_element_bytes(model)
    moved = transfer_seconds(
        model, workload.prompt_tokens, link, links=links, kv_bytes_per_element=element
    )
    spare = workload.ttft - step.seconds - moved - decode_seconds
    return PrefillWorker(layout, step, moved, largest_rate(step.seconds, spare, prompts))


def decode_worker(
    model: ModelSpec,
    system: System,
    layout: Layout,
    workload: Workload,
    capacity: int,
    options: EngineOptions | None = None,
) -> DecodeWorker:
    """One decode worker with the most sequences that TPOT and its KV cache allow.

    capacity: sequences of the workload's mean length that the KV cache holds.

    Raises:
        ValueError: it holds none.
    """
    if capacity < 1:
        raise ValueError(f"capacity is {capacity}; the KV cache must hold at least 1 sequence")
    context = workload.prompt_tokens + workload.output_tokens / 2

    def step(batch: int) -> StepTime:
        return decode_step(model, system, layout, batch, context, options)

    lone, full = step(1), step(capacity)
    if lone.seconds > workload.tpot:
        return DecodeWorker(layout, lone, 0, 0.0)
    good, bad, best = 1, capacity + 1, lone
    if full.seconds <= workload.tpot:
        good, best = capacity, full
    while bad - good > 1:
        middle = (good + bad) // 2
        tried = step(middle)
        if tried.seconds <= workload.tpot:
            good, best = middle, tried
        else:
            bad = middle
    return DecodeWorker(layout, best, good, good / (workload.output_tokens * best.seconds))


def match_pools(
    prefill: PrefillWorker, decode: DecodeWorker, workload: Workload, gpus: int
) -> Pools:
    """The numbers of workers on at most `gpus` GPUs with the most goodput; fewest GPUs of equals.

    Raises:
        ValueError: no rate keeps the limits, or two workers need more GPUs than there are; the
            message says which.
    """
    _require_feasible(prefill, decode, workload, gpus)
    return max(
        (
            _pools(prefill, decode, workload, some, most)
            for some in range(1, (gpus - decode.gpus) // prefill.gpus + 1)
            for most in _useful((gpus - some * prefill.gpus) // decode.gpus, some, prefill, decode)
        ),
        key=lambda pools: (pools.goodput, -pools.gpus),
    )


def _useful(
    most: int, num_prefill: int, prefill: PrefillWorker, decode: DecodeWorker
) -> Iterable[int]:
    """Numbers of decode workers worth a look: all that fit, or as many as prefill keeps busy."""
    enough = -(-num_prefill * prefill.rate // decode.rate)
    return {most, min(most, max(1, int(enough)))}


def _pools(
    prefill: PrefillWorker, decode: DecodeWorker, workload: Workload, some: int, most: int
) -> Pools:
    goodput = min(some * prefill.rate, most * decode.rate)
    wait = open_queue_wait(goodput, prefill.step.seconds, some * prefill.layout.dp)
    ttft = wait + prefill.step.seconds + prefill.transfer + decode.step.seconds
    return Pools(prefill, decode, some, most, goodput, ttft, decode.step.seconds)


def _require_feasible(
    prefill: PrefillWorker, decode: DecodeWorker, workload: Workload, gpus: int
) -> None:
    if prefill.rate <= 0:
        raise ValueError(
            f"prefill takes {prefill.step.seconds:.3g} s and the transfer {prefill.transfer:.3g} s,"
            f" so no rate keeps a TTFT of {workload.ttft:.3g} s; take more GPUs for a prefill"
        )
    if not decode.batch:
        raise ValueError(
            f"one sequence alone takes {decode.step.seconds:.3g} s a token, more than the TPOT of "
            f"{workload.tpot:.3g} s; take more GPUs for a decode worker"
        )
    if gpus < prefill.gpus + decode.gpus:
        raise ValueError(
            f"one worker of each kind takes {prefill.gpus} + {decode.gpus} GPUs; there are {gpus}"
        )
