"""Bytes, durations, shares and counts in sentences."""

from __future__ import annotations

_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def bytes_text(count: float) -> str:
    """`40 MiB`, `7.5 KiB`, with three significant digits; bytes below a KiB."""
    for name, size in _UNITS:
        if count >= size:
            value = count / size
            return f"{value:,.0f} {name}" if value >= 99.95 else f"{value:.3g} {name}"
    return f"{count:.0f} bytes"


def percent(share: float) -> str:
    """`46 %`; one digit after the point below 10 %."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def times(count: int) -> str:
    """`once`, `twice`, `4 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def duration(seconds: float) -> str:
    """`12.8 ms`, `450 us`, `1.5 s`, with three significant digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            value = seconds / size
            return f"{value:,.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"
    return f"{1e6 * seconds:.3g} us"
