"""What a search is asked, checked before anything is computed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from labkit.plan.collective_presets import CollectivePreset
from labkit.plan.engine_options import EngineOptions
from labkit.plan.hardware import DeviceSpec, require_count, require_positive
from labkit.plan.model import ModelSpec
from labkit.plan.objectives import NO_LIMIT, SLO, Objective
from labkit.plan.shard import counted
from labkit.plan.step_system import IDEAL, Efficiency, Fidelity, System
from labkit.plan.topology import Topology

MOST_GPUS = 512
"""That one search covers; more are replicas of what it finds."""


class QuestionError(ValueError):
    """A question without an answer: what is missing or cannot be."""


@dataclass(frozen=True)
class Question:
    """Which layout of a model on some GPUs is best, and for what.

    Attributes:
        topology: None takes the device's usual one.
        prompt_tokens, output_tokens: of a request; a decode step sees the prompt and half of the
            output, and the KV cache has room for both whole.
        slo: limits that a layout must keep.
        batch: sequences of each replica; None takes the largest that the SLO and the KV cache
            allow, or one in each copy of attention for LATENCY and where there is no SLO.
        options: of the engine; None takes its defaults. `max_num_seqs` is what the search finds,
            so the value there does not limit it.
        collectives: a recorded all-reduce; None takes the textbook's on the topology's links.
        efficiency: what an engine makes of the data sheet.
        price_per_gpu_hour: in any currency.
        allow_disaggregation: whether prefill and decode may have pools of their own.

    Raises:
        QuestionError: what is asked has no answer; a sentence says why, and what would have one.
        ValueError: a number outside its range, by name.
    """

    model: ModelSpec
    device: DeviceSpec
    gpus: int
    objective: Objective
    _: KW_ONLY
    prompt_tokens: int = 1024
    output_tokens: int = 256
    slo: SLO = NO_LIMIT
    batch: int | None = None
    topology: Topology | None = None
    options: EngineOptions | None = None
    collectives: CollectivePreset | None = None
    efficiency: Efficiency = IDEAL
    fidelity: Fidelity = Fidelity.FULL
    price_per_gpu_hour: float | None = None
    allow_disaggregation: bool = False

    def __post_init__(self) -> None:
        for name in ("gpus", "prompt_tokens", "output_tokens"):
            require_count(name, getattr(self, name))
        if self.batch is not None:
            require_count("batch", self.batch)
        if self.price_per_gpu_hour is not None:
            require_positive("price_per_gpu_hour", self.price_per_gpu_hour, "an hour")
        if not isinstance(self.objective, Objective):
            names = ", ".join(objective.value for objective in Objective)
            raise QuestionError(f"objective is {self.objective!r}; choose one of {names}")
        for refusal in (self._size_refusal(), self._limit_refusal(), self._split_refusal()):
            if refusal:
                raise QuestionError(refusal)

    def _size_refusal(self) -> str:
        if self.gpus > MOST_GPUS:
            return (
                f"gpus is {self.gpus}; a search covers 1 to {MOST_GPUS}: plan a part of them, and "
                "run replicas of it"
            )
        if self.topology is not None and self.topology.gpus < self.gpus:
            return (
                f"the topology has {self.topology.gpus} GPUs, fewer than the {self.gpus} asked for"
            )
        most = self.model.max_position_embeddings
        if self.length > most:
            return (
                f"a prompt of {self.prompt_tokens} tokens and {self.output_tokens} more are "
                f"{self.length}, beyond the model's context of {most}; shorten one of them"
            )
        return ""

    def _limit_refusal(self) -> str:
        if self.objective.needs_limits and self.slo.is_empty and self.batch is None:
            return (
                f"{self.objective.value} rises with the batch, and nothing limits the batch here: "
                "give an SLO (TPOT, TTFT or both), or a batch"
            )
        if self.objective is Objective.COST and self.price_per_gpu_hour is None:
            return "cost needs price_per_gpu_hour; without a price, ask for throughput"
        if self.fidelity is Fidelity.TEXTBOOK and self.slo.ttft is not None:
            return "the textbook's model has no prefill, so no TTFT; take FULL, or limit TPOT alone"
        return ""

    def _split_refusal(self) -> str:
        if not self.allow_disaggregation:
            return ""
        both = self.slo.ttft is not None and self.slo.tpot is not None
        if not self.objective.needs_limits or not both or self.batch is not None:
            return (
                "pools for prefill and decode are sized by a TTFT and a TPOT: ask for throughput "
                "or cost, with both limits and without a batch"
            )
        if self.gpus < 2:
            return "pools for prefill and decode need 2 GPUs at least; there is 1"
        if self.fidelity is Fidelity.TEXTBOOK:
            return "the textbook's model has no prefill, so no pools for it; take FULL"
        return ""

    @property
    def length(self) -> int:
        """Tokens of a whole request."""
        return self.prompt_tokens + self.output_tokens

    @property
    def context(self) -> float:
        """Tokens in front of a new one, on average."""
        return self.prompt_tokens + self.output_tokens / 2

    @property
    def takes_largest_batch(self) -> bool:
        """Whether the batch grows until a limit or the KV cache stops it."""
        no_batch = self.batch is None and not self.slo.is_empty
        return no_batch and self.objective is not Objective.LATENCY

    @property
    def has_prefill(self) -> bool:
        """Whether prefill is modelled."""
        return self.fidelity is Fidelity.FULL

    @cached_property
    def links(self) -> Topology:
        """The topology asked for, or the device's usual one."""
        return self.topology or Topology.for_device(self.device, self.gpus)

    @cached_property
    def engine(self) -> EngineOptions:
        """The options asked for, or the defaults."""
        return self.options or EngineOptions()

    @cached_property
    def system(self) -> System:
        """What a step runs on."""
        return System(self.device, self.links, self.collectives, self.efficiency, self.fidelity)

    @property
    def sentence(self) -> str:
        """The objective in one sentence."""
        if self.batch is not None:
            batch = f"{counted(self.batch, 'sequence')} in each replica"
        elif self.takes_largest_batch:
            batch = "the largest batch that the limits and the KV cache allow"
        else:
            batch = "one sequence in each copy of attention"
        price = ""
        if self.objective is Objective.COST:
            price = f", at {self.price_per_gpu_hour:g} a GPU and hour"
        return (
            f"The best layout of {counted(self.gpus, 'GPU')} has {self.objective.sentence}{price}, "
            f"for prompts of {self.prompt_tokens} and outputs of {self.output_tokens} tokens, with "
            f"{self.slo} and {batch}."
        )
