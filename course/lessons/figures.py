"""How a figure is written in a lesson's text: with its unit and where it comes from.

Lesson texts quote what labkit.plan computes; these functions are the only place that words it.
"""

from __future__ import annotations

from course.labels import Label, quantity


def modelled_bytes(value: float) -> str:
    """`40 KiB (modelled)`"""
    return f"{quantity(value, 'B', short=True)} ({Label.MODELLED})"


def modelled_seconds(value: float) -> str:
    """`53.7 ms (modelled)`"""
    return f"{quantity(value, 's')} ({Label.MODELLED})"


def times(ratio: float) -> str:
    """A ratio in two significant digits, with thousands separators: `26,000`."""
    return f"{float(f'{ratio:.2g}'):,.0f}"
