"""Questions for `choose_layout`: plain data for the learner, and the search's own answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from labkit.plan.candidates import Candidate, Cause, Rejected
from labkit.plan.device_presets import DEVICES
from labkit.plan.engine_options import EngineOptions
from labkit.plan.layout import Layout
from labkit.plan.link_presets import LINKS
from labkit.plan.model_presets import resolve_model
from labkit.plan.search import SLO, Answer, Objective, Question, compare, search
from labkit.plan.shard import divisors
from labkit.plan.step_system import Fidelity
from labkit.plan.topology import Topology

WORDS = {
    Cause.ILLEGAL: "illegal",
    Cause.TOO_LARGE: "too large",
    Cause.NO_ROOM: "too large",
    Cause.SLO_MISSED: "misses the SLO",
}
"""Why a layout does not serve, as the learner says it."""
BEHIND = "behind"
"""It serves, and another one is better."""


@dataclass(frozen=True)
class LayoutQuestion:
    """One question. `model`, `gpu` and `link` are names of presets; slo: seconds per token."""

    model: str
    gpu: str
    link: str
    gpus: int
    objective: str
    length: int
    slo: float | None
    other_bytes: float = 3e9

    @cached_property
    def question(self) -> Question:
        """What the search is asked: the two-term step, and memory without a model of the rest."""
        device = DEVICES[self.gpu]
        options = EngineOptions(activation_bytes=0.0, runtime_bytes=self.other_bytes)
        output = self.length // 4
        return Question(
            resolve_model(self.model),
            device,
            self.gpus,
            Objective(self.objective),
            prompt_tokens=self.length - output,
            output_tokens=output,
            slo=SLO(tpot=self.slo),
            topology=Topology.for_device(device, self.gpus, link=LINKS[self.link]),
            options=options,
            fidelity=Fidelity.TEXTBOOK,
        )

    @cached_property
    def answer(self) -> Answer:
        """What the search finds."""
        return search(self.question)

    @property
    def best(self) -> Candidate:
        """The best layout. LookupError where none serves: such a question is not asked."""
        if self.answer.best is None:
            raise LookupError(f"no layout serves {self.model} on {self.gpus} {self.gpu}")
        return self.answer.best

    def plain(self) -> dict[str, Any]:
        """The question as the learner gets it."""
        question, link = self.question, LINKS[self.link]
        model, layer = question.model, question.model.layers[0]
        (width,) = {matrix.out_features for matrix in layer.matrices if "gate" in matrix.name}
        return {
            "gpus": self.gpus,
            "usable_bytes": question.engine.gpu_memory_utilization * question.device.memory_bytes,
            "other_bytes": self.other_bytes,
            "memory_bandwidth": question.device.memory_bandwidth,
            "hop_seconds": link.hop_latency,
            "link_bandwidth": link.bandwidth,
            "weight_bytes": model.weight_bytes,
            "num_layers": model.num_layers,
            "hidden_size": model.hidden_size,
            "num_heads": model.num_heads,
            "num_kv_heads": model.num_kv_heads,
            "mlp_width": width,
            "kv_bytes_per_token": model.kv_bytes_per_token(),
            "tokens_per_request": self.length,
            "objective": self.objective,
            "slo": self.slo,
        }

    def found(self, tp: int, pp: int, replicas: int) -> Candidate | Rejected:
        """What became of a layout. ValueError for one that has too many GPUs."""
        layout = Layout(tp, pp, 1, 1, replicas)
        known = self.answer.find(layout)
        if known is not None:
            return known
        other = compare(self.question, [layout])
        return other.ranked[0] if other.ranked else other.rejected[0]

    def shortfall(self, other: Candidate) -> float:
        """How far a layout is behind the best: the part of the objective that it lacks."""
        if self.objective == "latency":
            return 1 - self.best.request_seconds / other.request_seconds
        return 1 - other.tokens_per_second / self.best.tokens_per_second

    def why_not(self, tp: int) -> str:
        """Why TP `tp` without stages is not the best, in one of the learner's words."""
        found = self.found(tp, 1, self.gpus // tp)
        return WORDS[found.cause] if isinstance(found, Rejected) else BEHIND

    def reasons(self, chosen: int | None) -> dict[int, str]:
        """Every other TP degree with its word; `chosen`: the degree of a layout without stages."""
        return {tp: self.why_not(tp) for tp in divisors(self.gpus) if tp != chosen}
