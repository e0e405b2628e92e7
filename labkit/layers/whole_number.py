"""Whole numbers from a caller: Python's, NumPy's or a tensor's, and never a rounded float."""

from __future__ import annotations

import operator
from typing import SupportsIndex


def whole_number(
    value: SupportsIndex, what: str, *, at_least: int | None = None, at_most: int | None = None
) -> int:
    """`value` as an int. ValueError, naming `what`, if it is none or out of bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{what} {value!r} must be a whole number") from None
    if at_least is not None and number < at_least:
        raise ValueError(f"{what} {number} must be at least {at_least}")
    if at_most is not None and number > at_most:
        raise ValueError(f"{what} {number} must be at most {at_most}")
    return number
