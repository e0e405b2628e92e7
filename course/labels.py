"""Where a number comes from, said beside the number: measured, captured, modelled or assumed."""

import html
from dataclasses import dataclass
from enum import StrEnum


class Label(StrEnum):
    """The four origins a number in this course can have."""

    MEASURED = "measured"
    CAPTURED = "captured"
    MODELLED = "modelled"
    ASSUMED = "assumed"

    @property
    def meaning(self) -> str:
        """One sentence for the reader."""
        return _MEANINGS[self]

    @property
    def symbol(self) -> str:
        """A shape that tells labels apart without colour."""
        return _SYMBOLS[self]


_MEANINGS = {
    Label.MEASURED: "Observed here, in this run: run the cell again and it may move.",
    Label.CAPTURED: "Recorded elsewhere earlier; the source says where, when and with what.",
    Label.MODELLED: "Computed by a formula from stated constants.",
    Label.ASSUMED: "An input that somebody chose.",
}
_SYMBOLS = {
    Label.MEASURED: "●",
    Label.CAPTURED: "◆",
    Label.MODELLED: "▲",
    Label.ASSUMED: "○",
}

_DECIMAL_STEPS = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))
_BINARY_STEPS = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_SECOND_STEPS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def quantity(value: float, unit: str = "", *, short: bool = False) -> str:
    """A value with its unit, scaled for reading; `short` leaves out the exact count of bytes.

    >>> quantity(0.0128, "s"), quantity(110_592, "B"), quantity(450e9, "B/s"), quantity(61, "calls")
    ('12.8 ms', '110,592 B (108 KiB)', '450 GB/s', '61 calls')
    """
    if unit == "s" and value:
        name, step = next((s for s in _SECOND_STEPS if abs(value) >= s[1]), _SECOND_STEPS[-1])
        return f"{value / step:.3g} {name}"
    if unit == "B":
        exact = f"{value:,.0f} B"
        scaled = next((f"{value / s:.4g} {n}" for n, s in _BINARY_STEPS if abs(value) >= s), exact)
        return scaled if short or scaled == exact else f"{exact} ({scaled})"
    if unit.endswith("/s"):
        prefix, step = next((s for s in _DECIMAL_STEPS if abs(value) >= s[1]), ("", 1.0))
        space = " " if prefix or unit else ""
        return f"{value / step:.3g}{space}{prefix}{unit}"
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return f"{number} {unit}".rstrip()


@dataclass(frozen=True)
class Number:
    """A number that cannot be shown without its label.

    value: in the base unit (seconds, bytes, bytes per second). source: what produced it, in words
    (a formula's name, a document with its date, "this run").
    """

    value: float
    unit: str
    label: Label
    source: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", Label(self.label))
        if not self.source.strip():
            raise ValueError(f"a {self.label} number needs a source: say what produced {self}")

    def __str__(self) -> str:
        return f"{quantity(self.value, self.unit)} [{self.label}]"

    def __repr__(self) -> str:
        return f"{quantity(self.value, self.unit)} [{self.label}: {self.source}]"

    def _repr_html_(self) -> str:
        shown = html.escape(quantity(self.value, self.unit))
        source = html.escape(self.source)
        return f"<strong>{shown}</strong> <small>{self.label.symbol} {self.label}: {source}</small>"


def measured(value: float, unit: str = "", source: str = "this run") -> Number:
    """A number observed in this run."""
    return Number(value, unit, Label.MEASURED, source)


def captured(value: float, unit: str, source: str) -> Number:
    """A number recorded earlier; `source` names host, date and software, or the publication."""
    return Number(value, unit, Label.CAPTURED, source)


def modelled(value: float, unit: str, source: str) -> Number:
    """A number computed by the formula that `source` names."""
    return Number(value, unit, Label.MODELLED, source)


def assumed(value: float, unit: str, source: str) -> Number:
    """An input; `source` says who chose it and why."""
    return Number(value, unit, Label.ASSUMED, source)
