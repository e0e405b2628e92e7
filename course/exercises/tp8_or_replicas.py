"""Exercise: one tensor parallel group or several replicas, at the largest batch an SLO allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.exercise import Case, Exercise
from labkit.plan.collectives import Ring

MESSAGES = {
    "one-replica-counted": "The tokens per second are those of one replica. All of them work.",
    "batch-of-all-replicas": "The batch is that of all replicas together. Each has its own step, "
    "and its own KV cache: give what one replica runs.",
    "replica-on-all-gpus": "A replica's step is that of all the GPUs. It has only its share of "
    "them, so each of its GPUs reads more weights, and its ring is shorter.",
    "KV-cache-forgotten": "The SLO alone stopped the batch. A replica's KV cache is full before.",
    "SLO-forgotten": "The batch is what the KV cache has room for, and its step is longer than the "
    "SLO.",
    "batch-of-one": "The SLO is kept with one sequence, and with more. A step serves all its "
    "sequences at once, so the largest batch makes the most tokens.",
    "batch-too-coarse": "A larger batch keeps the SLO as well. Only some sizes were tried, such as "
    "powers of two or tens.",
    "one-sequence-too-many": "With this batch the step is just longer than the SLO: the number "
    "was rounded up, or tried first and checked after.",
    "half-the-all-reduces": "A layer is counted with one all-reduce. Attention ends in one, and "
    "the MLP in another.",
    "layout-by-a-part": "The layout was chosen by a part of what counts: the shorter step, the "
    "larger batch, or what one replica makes. Tokens per second are the batch over the step, of "
    "every replica there is.",
    "answers-although-none": "Neither layout keeps the SLO, even with one sequence, or neither has "
    "room for one. There is nothing to choose.",
}

Answer = tuple[int, int, float]


@dataclass(frozen=True)
class Plan:
    """What is asked: one call."""

    gpus: int
    replicas: int
    weight_seconds: float
    layers: int
    row_bytes: int
    hop: float
    bandwidth: float
    room: tuple[int, int]
    slo: float

    def step(self, replicas: int, batch: float, *, on: int | None = None, calls: int = 2) -> float:
        """Seconds of a step; `on`: GPUs of a replica, if other than its share."""
        n = on or self.gpus // replicas
        terms = Ring(self.hop, self.bandwidth).terms(n, 1)
        reduce = terms.latency_seconds + terms.transfer_seconds * self.row_bytes * batch
        return self.weight_seconds / n + calls * self.layers * reduce

    def largest(self, replicas: int, **how: Any) -> int:
        """The largest batch of one replica that the SLO and the cache allow; 0: none."""
        most = self.room[0 if replicas == 1 else 1]
        batches = (b for b in range(most, 0, -1) if self.step(replicas, b, **how) <= self.slo)
        return next(batches, 0)

    def speed(self, replicas: int, batch: int, **how: Any) -> float:
        """Tokens per second of all replicas."""
        return replicas * batch / self.step(replicas, batch, **how)

    def best(self, **how: Any) -> Answer | None:
        """The answer, with steps that are made as `how` says."""
        options = [(count, self.largest(count, **how)) for count in (1, self.replicas)]
        found = [(c, b, self.speed(c, b, **how)) for c, b in options if b]
        return max(found, key=lambda answer: answer[2], default=None)


def _by(plan: Plan, pick: Any, speed: Any = None) -> Answer | None:
    """The answer where the layout is picked otherwise: `pick(replicas, batch)`, the largest."""
    options = [(c, plan.largest(c)) for c in (1, plan.replicas)]
    options = [(c, b) for c, b in options if b]
    if not options:
        return None
    count, batch = max(options, key=lambda option: pick(*option))
    return count, batch, (speed or plan.speed)(count, batch)


def _wrong(plan: Plan) -> Iterator[tuple[str, Answer | None]]:
    right = plan.best()
    k = plan.replicas

    def alone(count: int, batch: int) -> float:
        return plan.speed(count, batch) / count

    if right is None:
        return
    if right[0] > 1:
        yield "one-replica-counted", _by(plan, plan.speed, alone)
    yield "batch-of-all-replicas", (right[0], right[0] * right[1], right[2])
    shared = plan.largest(k, on=plan.gpus)
    if shared:
        speed = plan.speed(k, shared, on=plan.gpus)
        if speed > right[2] or right[0] == k:
            yield "replica-on-all-gpus", (k, shared, speed)
    yield "half-the-all-reduces", plan.best(calls=1)
    yield "batch-of-one", _ones(plan)
    yield "layout-by-a-part", _by(plan, alone)
    yield "layout-by-a-part", _by(plan, lambda c, b: -c)
    yield "layout-by-a-part", _by(plan, lambda c, b: b)


def _ones(plan: Plan) -> Answer | None:
    """The better layout with one sequence in each replica."""
    kept = [c for c in (1, plan.replicas) if plan.largest(c)]
    return max(((c, 1, plan.speed(c, 1)) for c in kept), key=lambda a: a[2], default=None)


def _returned(plan: Plan) -> Iterator[tuple[str, Returns]]:
    for key, value in _wrong(plan):
        yield key, on_every_rank(value)


def _shown(plan: Plan) -> Iterator[tuple[str, Any]]:
    """What a batch says by its size, whichever layout it is of."""

    def batch_of(outcome: Any) -> tuple[int, int, int]:
        """(replicas, batch, largest of that layout); raises unless it is an answer."""
        replicas, batch, _ = outcome.returned[0]
        if replicas not in (1, plan.replicas) or type(batch) is not int:
            raise ValueError("no layout of the question")
        return replicas, batch, plan.largest(replicas)

    def answers(outcome: Any) -> bool:
        return plan.best() is None and outcome.returned[0] is not None and bool(batch_of(outcome))

    def one_more(outcome: Any) -> bool:
        replicas, batch, most = batch_of(outcome)
        return most > 0 and batch == most + 1 and plan.step(replicas, batch) > plan.slo

    def beyond_room(outcome: Any) -> bool:
        replicas, batch, _ = batch_of(outcome)
        return plan.room[0 if replicas == 1 else 1] < batch and (
            plan.step(replicas, batch) <= plan.slo * (1 + 1e-9)
        )

    def beyond_slo(outcome: Any) -> bool:
        replicas, batch, _ = batch_of(outcome)
        room = plan.room[0 if replicas == 1 else 1]
        return batch == room and plan.step(replicas, batch) > plan.slo

    def coarse(outcome: Any) -> bool:
        replicas, batch, most = batch_of(outcome)
        if not 0 < batch < most:
            return False
        speed = plan.speed(replicas, batch)
        return abs(outcome.returned[0][2] - speed) <= 1e-6 * speed

    yield "answers-although-none", answers
    yield "one-sequence-too-many", one_more
    yield "KV-cache-forgotten", beyond_room
    yield "SLO-forgotten", beyond_slo
    yield "batch-too-coarse", coarse


def _case(what: str, plan: Plan) -> Case:
    def arguments(rank: int) -> Mapping[str, Any]:
        return {
            "gpus": plan.gpus,
            "replicas": plan.replicas,
            "model": {
                "weight_seconds": plan.weight_seconds,
                "num_layers": plan.layers,
                "row_bytes": plan.row_bytes,
            },
            "link": {"hop_seconds": plan.hop, "bandwidth": plan.bandwidth},
            "room": plan.room,
            "slo": plan.slo,
        }

    return Case(
        name=what,
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(plan.best()),
        mistakes=mistakes(MESSAGES, _returned(plan), _shown(plan)),
    )


def _plan(
    slo: float,
    room: tuple[int, int],
    *,
    gpus: int = 8,
    replicas: int = 2,
    billions: float = 72.7,
    layers: int = 80,
    hidden: int = 8192,
    hop: float = 2e-6,
    bandwidth: float = 450e9,
) -> Plan:
    weights = billions * 1e9 * 2 / 3.35e12
    return Plan(gpus, replicas, weights, layers, hidden * 2, hop, bandwidth, room, slo)


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("a 72B, 13 ms", _plan(13e-3, (24, 24))),
        _case("a 72B, 10 ms", _plan(10e-3, (905, 261))),
        _case("a 72B, 16 ms", _plan(16e-3, (301, 203))),
        _case("a 72B, 9 ms", _plan(9e-3, (905, 261))),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)

    def near(value: float) -> float:
        return value * random.uniform(0.99, 1.01)

    eight: dict[str, Any] = {"billions": near(8.03), "layers": 32, "hidden": 4096}
    slow: dict[str, Any] = {"hop": 5e-6, "bandwidth": near(25e9)}
    large: dict[str, Any] = {
        "gpus": 16,
        "replicas": 2,
        "billions": near(123),
        "layers": 88,
        "hidden": 12288,
    }
    return (
        _case("an 8B, 4 replicas", _plan(4.5e-3, (823, 157), replicas=4, **eight)),
        _case("a 72B on PCIe", _plan(near(19.3e-3), (905, 261), **slow)),
        _case("a 123B, 16 GPUs", _plan(near(15.2e-3), (700, 310), **large)),
        _case("a 72B, a tight SLO", _plan(10.1e-3, (777, 203), billions=near(72.5))),
        _case("a 72B on PCIe, too tight", _plan(near(15e-3), (905, 261), **slow)),
    )


EXERCISE = Exercise(
    name="tp8_or_replicas",
    chapter="03_layout_planning",
    title="One group or replicas, under an SLO",
    function="tp8_or_replicas",
    parameters=("gpus", "replicas", "model", "link", "room", "slo"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
