"""Tables of lesson 03's worked example: one model on eight GPUs, in three layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from course.labels import Label, quantity
from course.table import Table
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.steptime import System, decode_step

LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "TP 8": Layout(tp=8),
        "2 x TP 4": Layout(tp=4, replicas=2),
        "TP 4 x PP 2": Layout(tp=4, pp=2),
    }
)
"""Three ways to use eight GPUs."""


def groups(layout: Layout) -> int:
    """Batches in flight: one in each replica and stage."""
    return layout.replicas * layout.pp


def token_seconds(model: ModelSpec, system: System, layout: Layout, batch: int) -> float:
    """Seconds between two tokens by the textbook, with `batch` sequences in each batch in flight.

    With stages, as many batches go round as there are stages: each token passes all of them.
    """
    return decode_step(model, system, layout, batch).seconds


def batches_table(model: ModelSpec, system: System, batch: int) -> Table:
    """The three layouts at the same batch in each group, and alone; the first is the measure."""
    found = []
    for layout in LAYOUTS.values():
        alone = token_seconds(model, system, layout, 1)
        busy = token_seconds(model, system, layout, batch)
        found.append((alone, busy, groups(layout) * batch / busy))
    rows = []
    for (name, layout), values in zip(LAYOUTS.items(), found, strict=True):
        more = [f"{value / first - 1:+.0%}" for value, first in zip(values, found[0], strict=True)]
        users = groups(layout) * batch
        row = (
            f"{quantity(values[0], 's')} ({more[0]})",
            f"{quantity(values[1], 's')} ({more[1]})",
            users,
            f"{values[2]:,.0f} ({more[2]})",
        )
        rows.append((name, *row))
    return Table(
        ("layout", "a token, batch 1", f"a token, batch {batch}", "users then", "tokens/s then"),
        rows,
        caption=f"Batch {batch} in every replica and every stage; in brackets, against "
        f"{next(iter(LAYOUTS))} ({Label.MODELLED})",
    )


def users_table(model: ModelSpec, system: System, users: Sequence[int]) -> Table:
    """The three layouts with the same users, dealt evenly over replicas and stages."""
    rows = []
    for count in users:
        for name, layout in LAYOUTS.items():
            batch = count // groups(layout)
            seconds = token_seconds(model, system, layout, batch)
            rows.append((count, name, batch, quantity(seconds, "s"), f"{count / seconds:,.0f}"))
    return Table(
        ("users", "layout", "batch in flight", "a token", "tokens/s"),
        rows,
        caption=f"The same users for all ({Label.MODELLED})",
    )
