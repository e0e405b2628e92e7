"""What a search finds: layouts that serve, each with its figures, and those that do not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from labkit.plan.disaggregation import Pools
from labkit.plan.layout import Layout
from labkit.plan.layout_space import layout_title
from labkit.plan.objectives import Objective
from labkit.plan.pareto import ParetoPoint
from labkit.plan.question import Question
from labkit.plan.serving_point import BatchLimit, ServingPoint
from labkit.plan.steptime import StepTime

if TYPE_CHECKING:
    from labkit.plan.memory import MemoryPlan


@dataclass(frozen=True)
class Candidate:
    """A layout that is legal, fits and keeps the limits.

    Attributes:
        layout: with its replicas; of the decode pool where prefill has one of its own.
        memory: of one rank of each stage.
        point: one replica at the chosen batch.
        limited_by: what keeps the batch from growing.
        pools: of prefill and decode; None where the same GPUs do both.
    """

    question: Question = field(repr=False)
    layout: Layout
    memory: MemoryPlan = field(repr=False)
    point: ServingPoint
    limited_by: BatchLimit
    pools: Pools | None = None

    @property
    def title(self) -> str:
        """The layout in words."""
        if self.prefill_layout is None:
            return layout_title(self.layout)
        return f"prefill {layout_title(self.prefill_layout)}, decode {layout_title(self.layout)}"

    @property
    def prefill_layout(self) -> Layout | None:
        """Of the prefill pool, with its replicas; None where the same GPUs do both."""
        if self.pools is None:
            return None
        return replace(self.pools.prefill.layout, replicas=self.pools.num_prefill)

    @property
    def batch(self) -> int:
        """Sequences of one replica."""
        return self.point.batch

    @property
    def decode(self) -> StepTime:
        """A decode step without prefills."""
        return self.point.decode

    @property
    def prefill(self) -> StepTime | None:
        """Of one prompt in each copy of attention; None where it is not modelled."""
        return self.point.prefill if self.pools is None else self.pools.prefill.step

    @property
    def tpot(self) -> float:
        """Seconds between two tokens of a sequence, prefills of others included."""
        return self.point.tpot

    @property
    def ttft(self) -> float | None:
        """Seconds to the first token; None where prefill is not modelled. One pool runs as many
        requests as it has, so none queues; with two pools the queue for prefill is in."""
        return self.point.ttft if self.pools is None else self.pools.ttft

    @property
    def request_seconds(self) -> float:
        """Seconds of a whole request; without prefill where that is not modelled."""
        if self.pools is None:
            return self.point.request_seconds
        assert self.ttft is not None
        return self.ttft + (self.question.output_tokens - 1) * self.tpot

    @property
    def gpus(self) -> int:
        """That it uses."""
        return self.layout.world_size if self.pools is None else self.pools.gpus

    @property
    def idle_gpus(self) -> int:
        """That are left over."""
        return self.question.gpus - self.gpus

    @property
    def tokens_per_second(self) -> float:
        """Output tokens, all replicas together; with two pools, what the slower one lets pass."""
        if self.pools is None:
            return self.layout.replicas * self.point.tokens_per_second
        return self.pools.goodput * self.question.output_tokens

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """Output tokens, over all GPUs of the question: idle ones are there too."""
        return self.tokens_per_second / self.question.gpus

    @property
    def user_tokens_per_second(self) -> float:
        """What one client sees."""
        return 1 / self.tpot

    @property
    def cost_per_million(self) -> float | None:
        """Price of a million output tokens, all GPUs of the question paid; None without a price."""
        price = self.question.price_per_gpu_hour
        if price is None:
            return None
        return price * self.question.gpus / 3600 / self.tokens_per_second * 1e6

    @property
    def kv_tokens(self) -> int:
        """That all KV caches hold, in requests of the question's length."""
        each = self.memory.tokens_of_requests(self.question.length)
        return self.layout.replicas * self.layout.dp * each

    @property
    def score(self) -> float:
        """What the question ranks by; the smallest is the best."""
        objective = self.question.objective
        if objective is Objective.LATENCY:
            return self.request_seconds
        if objective is Objective.KV_CAPACITY:
            return -self.kv_tokens
        return -self.tokens_per_second_per_gpu

    @property
    def pareto_point(self) -> ParetoPoint:
        """Itself, to be set against others."""
        return ParetoPoint(
            self.layout,
            self.batch,
            self.tpot,
            self.tokens_per_second_per_gpu,
            self.ttft,
            self.prefill_layout,
        )

    @cached_property
    def reasons_for(self) -> tuple[str, ...]:
        """What speaks for it, each with its figures."""
        from labkit.plan.reasons import reasons_for  # which imports this module

        return reasons_for(self)

    @cached_property
    def reasons_against(self) -> tuple[str, ...]:
        """What speaks against it, each with its figures."""
        from labkit.plan.reasons import reasons_against

        return reasons_against(self)


class Cause(Enum):
    """Why a layout does not serve."""

    ILLEGAL = "illegal"
    TOO_LARGE = "too large"
    NO_ROOM = "no room for the batch"
    SLO_MISSED = "SLO missed"


@dataclass(frozen=True)
class Rejected:
    """A layout that does not serve, with every reason.

    Attributes:
        reasons: sentences.
        best: its point with one sequence in each copy of attention, or at the batch that was
            given; None for what is illegal or too large.
        missing_bytes: what a rank lacks, of what is too large.
    """

    layout: Layout
    cause: Cause
    reasons: tuple[str, ...]
    best: ServingPoint | None = None
    missing_bytes: float = 0.0

    @property
    def title(self) -> str:
        """The layout in words."""
        return layout_title(self.layout)
