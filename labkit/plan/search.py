"""Which layout of some GPUs is best for a stated objective, and why the others are not.

Every layout of TP x PP x DP x EP x replicas is tried. Illegal ones and those too large for memory
are rejected with all their reasons. Each of the rest gets the largest batch that its KV cache and
the SLO allow (time per token rises with the batch), and is rejected if even the smallest breaks the
SLO. What is left is ranked by the objective.

The bandwidth hierarchy is kept: a TP group lies on neighbouring GPUs, inside a node while it fits,
then DP, and pipeline stages and replicas cross nodes. `labkit.plan.placement_order` compares it
with the other order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from labkit.plan.candidates import Candidate, Cause, Rejected
from labkit.plan.fitting_layout import FittingLayout, fit_layout
from labkit.plan.layout import Layout
from labkit.plan.layout_space import gpu_arithmetic, layouts
from labkit.plan.objectives import SLO, Objective
from labkit.plan.pareto import ParetoPoint, pareto_set
from labkit.plan.question import Question, QuestionError
from labkit.plan.search_notes import notes, split_sentence
from labkit.plan.serving_point import BatchLimit, largest_point, serving_points
from labkit.plan.shard import counted
from labkit.plan.split_search import splits
from labkit.plan.step_system import Fidelity

__all__ = ["SLO", "Answer", "Objective", "Question", "QuestionError", "compare", "search"]


@dataclass(frozen=True)
class Answer:
    """What was found.

    Attributes:
        ranked: layouts that serve, the best first.
        rejected: those that do not, each with its reasons, in the order they were tried.
        notes: what to know before believing it.
    """

    question: Question = field(repr=False)
    ranked: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...]
    notes: tuple[str, ...]
    _fitting: tuple[FittingLayout, ...] = field(default=(), repr=False)

    @property
    def objective(self) -> str:
        """What "best" means here, in one sentence."""
        return self.question.sentence

    @property
    def best(self) -> Candidate | None:
        """The first of `ranked`; None where nothing serves."""
        return self.ranked[0] if self.ranked else None

    @property
    def nearest(self) -> Rejected | None:
        """Where nothing serves: what misses the SLO by least; else what has room for most requests,
        though too few; else what lacks the least memory."""
        missed = [each for each in self.rejected if each.cause is Cause.SLO_MISSED]
        if missed:
            return min(missed, key=lambda each: each.best.tpot if each.best else 0.0)
        if self._fitting:
            roomiest = max(self._fitting, key=lambda each: each.memory.kv_tokens)
            return next(each for each in self.rejected if each.layout == roomiest.layout)
        large = [each for each in self.rejected if each.cause is Cause.TOO_LARGE]
        return min(large, key=lambda each: each.missing_bytes, default=None)

    @cached_property
    def pareto(self) -> tuple[ParetoPoint, ...]:
        """Layouts and batches that no other beats in both TPOT and tokens per second for each GPU.

        Batches are powers of two for each copy of attention, and the largest that the KV cache
        holds; the SLO does not matter.
        """
        points = [
            point for fitting in self._fitting for point in fitting.pareto_points(self.question)
        ]
        return pareto_set([*points, *(each.pareto_point for each in self.ranked)])

    @property
    def split(self) -> str:
        """Why a replica has as many GPUs as it has: replicas come first, splitting one after."""
        return split_sentence(self.best, [each.layout for each in self._fitting])

    def find(self, layout: Layout) -> Candidate | Rejected | None:
        """What became of a layout; None if it was not tried."""
        for candidate in self.ranked:
            if candidate.pools is None and candidate.layout == layout:
                return candidate
        return next((each for each in self.rejected if each.layout == layout), None)


def search(question: Question) -> Answer:
    """Every layout of the question's GPUs, ranked by its objective."""
    node = question.links.gpus_per_node
    every = layouts(question.model, question.gpus, node)
    if question.fidelity is Fidelity.TEXTBOOK:
        every = (layout for layout in every if layout.dp == 1)
    return _answer(question, every)


def compare(question: Question, named: Sequence[Layout]) -> Answer:
    """The same for the layouts named, and no others.

    Raises:
        QuestionError: a layout needs more GPUs than there are, or none is named.
    """
    if not named:
        raise QuestionError("no layout is named; give at least one")
    for layout in named:
        if layout.world_size > question.gpus:
            raise QuestionError(
                f"{gpu_arithmetic(layout)}, more than the {question.gpus} of the question"
            )
    return _answer(question, named)


def _answer(question: Question, tried: Iterable[Layout]) -> Answer:
    fitting: list[FittingLayout] = []
    found: list[Candidate] = []
    rejected: list[Rejected] = []
    for layout in tried:
        judged: FittingLayout | Candidate | Rejected = fit_layout(question, layout)
        if isinstance(judged, FittingLayout):
            fitting.append(judged)
            judged = _judge(question, judged)
        if isinstance(judged, Candidate):
            found.append(judged)
        else:
            rejected.append(judged)
    if question.allow_disaggregation:
        found.extend(splits(question, fitting))
    return Answer(
        question, tuple(sorted(found, key=_rank)), tuple(rejected), notes(question), tuple(fitting)
    )


def _rank(candidate: Candidate) -> tuple[float, int, int, int, int]:
    """By the objective; of equals the one with fewer GPUs in a replica, then the plainer one, then
    the one that keeps experts whole."""
    layout = candidate.layout
    return candidate.score, layout.replica_size, layout.pp, layout.dp, layout.expert_tp


def _judge(question: Question, fitting: FittingLayout) -> Candidate | Rejected:
    """The layout at its batch, or why it does not serve."""
    layout, room = fitting.layout, fitting.room(question.length)
    wanted = 1 if question.batch is None else -(-question.batch // layout.dp)
    if room < wanted:
        return Rejected(layout, Cause.NO_ROOM, (fitting.no_room(question.length, wanted),))
    points = serving_points(question, layout)
    if question.batch is not None:
        point, limit = points(wanted, question.batch), BatchLimit.GIVEN
    elif question.takes_largest_batch:
        point, limit = largest_point(question, points, room)
    else:
        point, limit = points(1), BatchLimit.GIVEN
    missed = question.slo.misses(point.ttft, point.tpot)
    if missed:
        said = tuple(f"{clause}, with {counted(point.batch, 'sequence')}" for clause in missed)
        return Rejected(layout, Cause.SLO_MISSED, said, point)
    return Candidate(question, layout, fitting.memory, point, limit)
