"""From which context on one layout decodes faster than another."""

from __future__ import annotations

from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.steptime import System, decode_step

LONGEST = 2**21


def crossing_context(
    model: ModelSpec,
    system: System,
    one: Layout,
    other: Layout,
    *,
    batch: int = 1,
    longest: int = LONGEST,
) -> int | None:
    """The fewest tokens in front at which `other` is the faster; 0 where it always is, None where
    it is not up to `longest` tokens.

    Splitting a KV cache that grows gains more the longer it is, while the all-reduces cost the same
    at any length: so there is one such point at most.
    """

    def gains(context: int) -> bool:
        steps = (decode_step(model, system, layout, batch, context) for layout in (one, other))
        before, after = (step.seconds for step in steps)
        return after < before

    if gains(0):
        return 0
    if not gains(longest):
        return None
    low, high = 0, longest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gains(middle) else (middle, high)
    return high
