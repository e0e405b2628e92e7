"""Tables of lesson 03 about which layouts are legal, and what repairs those that are not."""

from __future__ import annotations

from collections.abc import Iterable

from course.labels import Label
from course.table import Table
from labkit.plan.layout import Layout
from labkit.plan.layout_space import layout_title
from labkit.plan.legality import check
from labkit.plan.model import ModelSpec


def legality_table(model: ModelSpec, layouts: Iterable[Layout]) -> Table:
    """Each layout with all reasons against it, and what would repair each."""
    rows = []
    for layout in layouts:
        found = check(model, layout)
        if found.is_legal:
            rows.append((layout_title(layout), "legal", ""))
        rows += [(layout_title(layout), reason.text, reason.fix) for reason in found.reasons]
    caption = f"By the rules of division ({Label.MODELLED})"
    return Table(("layout", "verdict", "what would repair it"), rows, caption=caption)
