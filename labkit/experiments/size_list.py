"""Sizes as a command line takes them: `16KiB`, `1KiB:64MiB`, or several of these with commas."""

from __future__ import annotations

import re

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
FACTORS = (2, 4)
LARGEST = 2**30
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def parse_sizes(text: str, itemsize: int = 1) -> tuple[int, ...]:
    """Bytes, ascending and each once: `16KiB,72KiB`, `1KiB:64MiB`, `1KiB:64MiB:2`.

    A range goes from its first size in steps of 4 times (or of 2, where `:2` follows) and ends with
    its last size, whether or not a step lands there.

    Raises ValueError for what is no size, for one of no whole number of elements of `itemsize`
    bytes, and for more than 1 GiB.
    """
    sizes = {size for part in text.split(",") for size in _sizes_of(part.strip())}
    for size in sorted(sizes):
        if size % itemsize:
            below = size - size % itemsize
            nearest = below if below > 0 else itemsize
            raise ValueError(
                f"{size_text(size)} is no whole number of elements of {itemsize} bytes; "
                f"the nearest size is {size_text(nearest)}"
            )
    return tuple(sorted(sizes))


def size_text(size: int) -> str:
    """`16 KiB`; bytes where that would not be exact to three digits."""
    for unit, step in reversed(UNITS.items()):
        if size >= step and round(size / step, 3) == size / step:
            return f"{size / step:.10g} {unit}"
    return f"{size} B"


def _sizes_of(part: str) -> list[int]:
    ends = part.split(":")
    if len(ends) == 1:
        return [_size(part)]
    if len(ends) > 3:
        raise ValueError(f"{part} is no range of sizes; want FIRST:LAST or FIRST:LAST:2")
    factor = _factor(ends[2]) if len(ends) == 3 else max(FACTORS)
    size, last = _size(ends[0]), _size(ends[1])
    if size > last:
        raise ValueError(f"the range {part} goes down; want {ends[1]}:{ends[0]}")
    sizes = []
    while size < last:
        sizes.append(size)
        size *= factor
    return [*sizes, last]


def _factor(text: str) -> int:
    if text not in map(str, FACTORS):
        raise ValueError(f"a range of sizes goes in steps of 2 or 4 times, not {text or 'nothing'}")
    return int(text)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text or 'nothing'} is no size; want one like 16KiB")
    number, unit = match.groups()
    units = {known.lower(): step for known, step in UNITS.items()}
    if unit.lower() not in units and unit:
        raise ValueError(f"{text}: sizes come in {', '.join(UNITS)}, not in {unit}")
    size = float(number) * units.get(unit.lower(), 1)
    if not size.is_integer() or not 1 <= size <= LARGEST:
        raise ValueError(f"{text} is no size from 1 B to {size_text(LARGEST)} in whole bytes")
    return int(size)
