"""Memory and step of a layout as bars: which parts go together, and how they look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from course.labels import quantity
from course.widgets.explorer_view import Bar, Look
from labkit.plan.memory import MemoryPlan
from labkit.plan.steptime import TERMS, StepTime

STEP_PARTS: Mapping[str, tuple[Look, tuple[str, ...]]] = {
    "weights": ("first", ("weights",)),
    "KV cache": ("second", ("KV cache",)),
    "compute": ("third", ("compute", "activations")),
    "collectives": (
        "again",
        ("all-reduce latency", "all-reduce transfer", "all-to-all", "logits gather"),
    ),
    "overheads, idling": (
        "filler",
        (
            "pipeline sends",
            "pipeline bubble",
            "layer overhead",
            "step overhead",
            "sequence overhead",
        ),
    ),
}
"""What a bar shows together -> its look, and the planner's terms in it. Idling is the bubble."""
MEMORY_PARTS: Mapping[str, Look] = {
    "weights": "first",
    "other": "filler",
    "KV pool": "second",
}
"""The same for memory; other: activations and runtime."""


@dataclass(frozen=True)
class Part:
    """A stretch of a bar; size in seconds or bytes."""

    name: str
    look: Look
    size: float


def step_parts(step: StepTime) -> tuple[Part, ...]:
    """The terms of a step, put together; they sum to its seconds."""
    return tuple(
        Part(name, look, sum(step.terms[term] for term in terms))
        for name, (look, terms) in STEP_PARTS.items()
    )


def memory_parts(plan: MemoryPlan) -> tuple[Part, ...]:
    """What a rank of the tightest stage holds; a pool that is not there counts as nothing."""
    stage = plan.stages[plan.limiting_stage]
    sizes = {
        "weights": stage.total_weight_bytes,
        "other": stage.activation_bytes + stage.runtime_bytes,
        "KV pool": max(0.0, stage.kv_pool_bytes),
    }
    return tuple(Part(name, look, sizes[name]) for name, look in MEMORY_PARTS.items())


def bars(parts: Iterable[Part], total: float) -> tuple[Bar, ...]:
    """One behind the other on a track that is `total` long, cut off at its end."""
    found, start = [], 0.0
    for part in parts:
        size = min(part.size, total - start)
        if size > 0:
            found.append(Bar.of(start, size, total, part.look))
        start += part.size
    return tuple(found)


def parts_in_words(parts: Iterable[Part], unit: str) -> str:
    """`6.04 ms weights + 925 us KV cache`, nothing left out but nothings."""
    return " + ".join(
        f"{quantity(part.size, unit, short=True)} {part.name}" for part in parts if part.size > 0
    )


assert {term for _, terms in STEP_PARTS.values() for term in terms} == set(TERMS)
