"""What an explorer shows, as plain data: controls to move, and the answer to where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

Look = Literal["first", "again", "filler", "second", "third"]
"""Of a bar: the thing itself (blue), what is paid on top (vermillion, hatched), filling (grey);
second (green, dotted) and third (purple, banded) things where there are several."""


@dataclass(frozen=True)
class Control:
    """A slider, menu or tick box. A choice is the index of one of `options`, the words shown."""

    name: str
    label: str
    kind: Literal["slider", "menu", "tick"]
    options: tuple[str, ...]


@dataclass(frozen=True)
class Bar:
    """A part of a track, in percent of it."""

    left: float
    width: float
    look: Look

    @classmethod
    def of(cls, start: float, length: float, total: float, look: Look = "first") -> Bar:
        """From `start` on, `length` of a track that is `total` long."""
        return cls(100 * start / total, 100 * length / total, look)


@dataclass(frozen=True)
class Cell:
    """A number or range in words, with bars under it; `note` marks what is special about it."""

    text: str
    bars: tuple[Bar, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Jump:
    """A button that moves a control."""

    text: str
    choice: Mapping[str, int]


@dataclass(frozen=True)
class View:
    """The answer to one choice, all of it computed: the browser only draws."""

    headline: str
    is_good: bool
    sentences: tuple[str, ...]
    origin: str
    """Where the numbers come from, with their labels."""
    hint: str = ""
    reasons: tuple[str, ...] = ()
    jumps: tuple[Jump, ...] = ()
    caption: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    """Heading and what stands under it, for each column of the figure."""
    rows: tuple[tuple[str, Sequence[Cell]], ...] = ()
    legend: tuple[tuple[Look, str], ...] = field(default=())
    commands: tuple[tuple[str, str], ...] = ()
    """What each is for, and lines to type."""
    chart: Mapping[str, Any] | None = None
    """Curves under the figure, as `Chart.geometry` places them."""

    def as_data(self) -> dict[str, Any]:
        """As lists, dicts, strings and numbers."""
        return {**asdict(replace(self, chart=None)), "chart": self.chart}
