"""The steps that the collective sketch compares, and the batch at which a split stops paying."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

from course.widgets.sketch_controls import BATCHES, Position
from course.widgets.sketch_links import Link
from labkit.plan.collectives import CostModel
from labkit.plan.decode_sketch import Sketch, sketch


def cost(position: Position, link: Link) -> CostModel:
    """The model of an all-reduce over `link`."""
    return link.cost(position.tp, position.algorithm, position.hop)


def step(position: Position, link: Link, batch: float | None = None) -> Sketch:
    """One GPU against the split over `link`; for another batch, if one is given."""
    return _sketch(
        batch or position.batch,
        position.hidden,
        position.layers,
        position.tp,
        position.scaling,
        cost(position, link),
    )


def compared(position: Position) -> Iterator[tuple[Link, Sketch]]:
    """The chosen link and those laid over it, each with its step."""
    for link in dict.fromkeys((position.link, *position.overlay)):
        yield link, step(position, link)


def pays(result: Sketch) -> bool:
    """Whether the split step is the shorter one."""
    return result.step_seconds < result.one_gpu_seconds


@lru_cache(maxsize=4096)
def crossing(position: Position, link: Link) -> float | None:
    """The first batch at which the split begins or stops paying; None up to the largest offered."""

    def pays_at(batch: float) -> bool:
        return pays(step(position, link, batch))

    for left, right in pairwise(BATCHES):
        if pays_at(left) != pays_at(right):
            return _change(pays_at, left, right)
    return None


def crossing_in_words(position: Position) -> str:
    """The crossing of the chosen link, as a sentence."""
    batch = crossing(position, position.link)
    pays_alone = pays(step(position, position.link, BATCHES[0]))
    if batch is None:
        than = "shorter than" if pays_alone else "no shorter than"
        return f"the split step is {than} one GPU's at every batch up to {BATCHES[-1]:,}"
    change = "stops paying" if pays_alone else "begins to pay"
    return f"the split {change} at a batch of about {batch:.0f}"


def _change(holds: Callable[[float], bool], left: float, right: float) -> float:
    """Where an answer changes between two batches, to a thousandth."""
    before = holds(left)
    while right - left > 1e-3 * left:
        middle = (left + right) / 2
        left, right = (middle, right) if holds(middle) == before else (left, middle)
    return (left + right) / 2


@lru_cache(maxsize=50_000)
def _sketch(
    batch: float, hidden: int, layers: int, tp: int, scaling: float, model: CostModel
) -> Sketch:
    return sketch(batch, hidden, layers, tp, model, compute_scaling=scaling)
