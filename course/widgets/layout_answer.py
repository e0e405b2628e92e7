"""What the planner answers where the layout explorer's controls stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from course.widgets.layout_controls import Position
from labkit.plan.candidates import Candidate, Rejected
from labkit.plan.layout import Layout
from labkit.plan.memory import MemoryPlan, plan_memory
from labkit.plan.question import Question, QuestionError
from labkit.plan.search import Answer, search
from labkit.plan.serving_point import ServingPoint, serving_points

MOST_ROWS = 8
MOST_CURVES = 4
_BATCHES = tuple(2**power for power in range(10))


@dataclass(frozen=True)
class Row:
    """One layout: what it holds, and what it does or why it does not serve.

    memory: None for an illegal one. point: None where it cannot run at all.
    """

    title: str
    layout: Layout
    memory: MemoryPlan | None
    point: ServingPoint | None
    candidate: Candidate | None
    cause: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class LayoutAnswer:
    """refusal: why the question has no answer; "" where it has one."""

    refusal: str
    answer: Answer | None
    rows: tuple[Row, ...]

    @property
    def best(self) -> Candidate | None:
        """The layout that serves best; None where none does."""
        return self.answer.best if self.answer else None


@lru_cache(maxsize=512)
def answer_at(position: Position) -> LayoutAnswer:
    """The planner's answer: the layouts that serve first, then those that do not."""
    try:
        answer = search(position.question)
    except QuestionError as refused:
        return LayoutAnswer(str(refused), None, ())
    served = [
        Row(one.title, one.layout, one.memory, one.point, one) for one in answer.ranked[:MOST_ROWS]
    ]
    rejected = (_rejected(answer.question, one) for one in reversed(answer.rejected))
    rows = [*served, *rejected][: max(MOST_ROWS, len(served) + 2)]
    return LayoutAnswer("", answer, tuple(rows))


def _rejected(question: Question, one: Rejected) -> Row:
    memory = None
    if one.cause.value != "illegal":
        memory = plan_memory(question.model, question.device, one.layout, question.engine)
    return Row(one.title, one.layout, memory, one.best, None, one.cause.value, one.reasons)


def curves(answer: Answer) -> Iterator[tuple[Candidate, tuple[tuple[float, float], ...]]]:
    """For the best layouts: TPOT and tokens per second for each GPU over the batch."""
    question = answer.question
    for candidate in answer.ranked[:MOST_CURVES]:
        layout = candidate.layout
        points = serving_points(question, layout)
        room = int(candidate.memory.max_concurrency(question.length))
        sizes = [size for size in _BATCHES if size <= room]
        found = [points(size) for size in sizes]
        yield (
            candidate,
            tuple((p.tpot, layout.replicas * p.tokens_per_second / question.gpus) for p in found),
        )
