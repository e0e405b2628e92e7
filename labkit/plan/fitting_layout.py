"""A layout that is legal and fits memory, and the batches that its KV cache has room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from labkit.plan.candidates import Cause, Rejected
from labkit.plan.layout import Layout
from labkit.plan.legality import check
from labkit.plan.memory import MemoryPlan, plan_memory
from labkit.plan.pareto import ParetoPoint
from labkit.plan.question import Question
from labkit.plan.serving_point import serving_points
from labkit.plan.shard import counted


@dataclass(frozen=True)
class FittingLayout:
    """A layout with the memory of one of its replicas."""

    layout: Layout
    memory: MemoryPlan

    def room(self, length: int) -> int:
        """Sequences of `length` tokens that the KV cache of one copy of attention holds."""
        return int(self.memory.max_concurrency(length))

    def no_room(self, length: int, wanted: int) -> str:
        """The sentence for more sequences than there is room for."""
        return (
            f"{counted(wanted, 'request')} of {length} tokens in one copy of attention need more "
            f"than its KV cache, which has room for {self.room(length)}"
        )

    def pareto_points(self, question: Question) -> Iterator[ParetoPoint]:
        """Its points at rising batches; at the question's batch alone where it gives one."""
        room, layout = self.room(question.length), self.layout
        points = serving_points(question, layout)
        batches = (2**exponent * layout.dp for exponent in range(room.bit_length()))
        every = {*batches, room * layout.dp} if question.batch is None else {question.batch}
        for batch in sorted(every):
            sequences = -(-batch // layout.dp)
            if not 0 < sequences <= room:
                continue
            point = points(sequences, batch)
            made = layout.replicas * point.tokens_per_second / question.gpus
            yield ParetoPoint(layout, batch, point.tpot, made, point.ttft)


def fit_layout(question: Question, layout: Layout) -> FittingLayout | Rejected:
    """The layout with its memory, or every reason why it cannot be."""
    copies = question.engine.num_redundant_experts
    legality = check(question.model, layout, num_redundant_experts=copies)
    if not legality.is_legal:
        said = tuple(f"{why.text}; {why.fix}" if why.fix else why.text for why in legality.reasons)
        return Rejected(layout, Cause.ILLEGAL, said)
    alone = layout if layout.replicas == 1 else replace(layout, replicas=1)
    memory = plan_memory(question.model, question.device, alone, question.engine)
    if not memory.fits:
        missing = memory.missing_bytes
        return Rejected(layout, Cause.TOO_LARGE, (memory.reason,), missing_bytes=missing)
    return FittingLayout(layout, memory)
