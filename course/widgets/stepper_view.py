"""What the ring stepper shows after each step of a recorded algorithm, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from course.widgets.message_pattern import merged, who_sends
from labkit.plan.shard import counted

if TYPE_CHECKING:
    from labkit.ranks.algorithm_record import Move, Step, StepRecord

Holds = Sequence[Sequence[frozenset[int]]]
"""By rank, then chunk: whose values are in it; empty where nothing valid is."""
Look = Literal["none", "partial", "whole"]
MOST_NAMED = 4
"""Ranks up to which a partial sum is written out; beyond, counted."""


@dataclass(frozen=True)
class Held:
    """One chunk on one rank."""

    text: str
    brief: str
    """The same where room is short."""
    words: str
    """The same for a listener."""
    from_ranks: tuple[int, ...]
    look: Look
    is_new: bool
    """Whether this step brought it."""


@dataclass(frozen=True)
class Sent:
    """What goes from one rank to another in one step."""

    src: int
    dst: int
    label: str
    cargo: str
    then: str
    """What becomes of it there."""


@dataclass(frozen=True)
class Position:
    """The stepper before the first step (`number` 0) or after a step."""

    number: int
    phase: str
    name: str
    headline: str
    sent: tuple[Sent, ...]
    held: tuple[tuple[Held, ...], ...]
    """By rank, then chunk."""


class Run:
    """A recorded run, ready to show.

    Attributes:
        sums_are_named: whether a partial sum is written out (0+2+3) and not counted (3 of 8).
        positions: before the first step, then after each.
        is_sum: whether anything is added up; a gather only passes on.
        finding: what the last step leaves, as a sentence.
    """

    def __init__(self, record: StepRecord) -> None:
        self.ranks, self.chunks = record.ranks, record.chunks
        self.title = f"{_sentence(record.algorithm)}, {counted(record.ranks, 'rank')}"
        self.sums_are_named = record.ranks <= MOST_NAMED
        start = before_first(record)
        holds = [start, *(step.holds for step in record.steps)]
        self._most = max((len(cell) for held in holds for row in held for cell in row), default=1)
        self.is_sum = self._most > 1
        self._steps = len(record.steps)
        self.positions = (
            self._start(start),
            *(self._after(step, before) for step, before in zip(record.steps, holds, strict=False)),
        )
        self.finding = f"{self.title}: after {counted(self._steps, 'step')} {self._end(holds[-1])}"

    def as_data(self) -> dict[str, Any]:
        """As lists, dicts, strings and numbers."""
        return {
            "title": self.title,
            "ranks": self.ranks,
            "chunks": self.chunks,
            "is_sum": self.is_sum,
            "positions": [asdict(position) for position in self.positions],
        }

    def _start(self, holds: Holds) -> Position:
        headline = f"Before the first step: {self._state(holds)}."
        return Position(0, "start", "start", headline, (), self._table(holds, holds))

    def _after(self, step: Step, before: Holds) -> Position:
        phase, messages = step.phase, merged(step.moves)
        headline = (
            f"Step {step.number} of {self._steps}, {phase}: {who_sends(messages, self.ranks)}. "
            f"Then {self._state(step.holds)}."
        )
        name = f"step {step.number} of {self._steps}, {phase}"
        sent = tuple(self._sent(ends, moves, before) for ends, moves in messages.items())
        return Position(step.number, phase, name, headline, sent, self._table(step.holds, before))

    def _sent(self, ends: tuple[int, int], moves: Sequence[Move], before: Holds) -> Sent:
        src, dst = ends
        cargo = [self._cargo(move) for move in moves]
        added = [self.is_sum and bool(before[dst][m.chunk] - m.contributors) for m in moves]
        then = "added" if all(added) else "kept" if not any(added) else "added and kept"
        label = ", ".join(str(move.chunk) for move in moves) if self.chunks > 1 else ""
        return Sent(src, dst, label, " and ".join(cargo), then)

    def _cargo(self, move: Move) -> str:
        words = self._words(move.contributors)
        return f"chunk {move.chunk} ({words})" if self.chunks > 1 else words

    def _table(self, holds: Holds, before: Holds) -> tuple[tuple[Held, ...], ...]:
        return tuple(
            tuple(self._held(now, now != then) for now, then in zip(row, earlier, strict=True))
            for row, earlier in zip(holds, before, strict=True)
        )

    def _held(self, cell: frozenset[int], is_new: bool) -> Held:
        ranks = tuple(sorted(cell))
        if not cell:
            return Held("\N{EN DASH}", "", "nothing valid", ranks, "none", is_new)
        words = self._words(cell)
        if not self.is_sum:
            return Held(f"from {ranks[0]}", str(ranks[0]), words, ranks, "whole", is_new)
        if len(cell) == self._most:
            brief = "sum" if self.sums_are_named else str(self._most)
            return Held(f"sum of {self._most}", brief, words, ranks, "whole", is_new)
        added = "+".join(map(str, ranks))
        if self.sums_are_named:
            return Held(added, added, words, ranks, "partial", is_new)
        count = f"{len(cell)} of {self._most}"
        return Held(count, str(len(cell)), words, ranks, "partial", is_new)

    def _words(self, cell: frozenset[int]) -> str:
        if not cell:
            return "nothing valid"
        if len(cell) == 1:
            return f"values of rank {min(cell)}"
        if len(cell) == self._most:
            return "the finished sum"
        return f"sum of ranks {_listed(sorted(cell))}"

    def _end(self, holds: Holds) -> str:
        """What is whole at the end, rank by rank where all have equally much."""
        counts = {sum(len(cell) == self._most for cell in row) for row in holds}
        if counts == {self.chunks}:
            return f"every rank has {'the whole sum' if self.is_sum else 'a chunk from every rank'}"
        if len(counts) == 1 and self.is_sum:
            return f"every rank has {counts.pop()} of {self.chunks} finished sums"
        return self._state(holds)

    def _state(self, holds: Holds) -> str:
        cells = [cell for row in holds for cell in row]
        whole = sum(len(cell) == self._most for cell in cells)
        what = "a finished sum" if self.is_sum else "their values"
        return f"{whole} of {counted(len(cells), 'place')} hold{'s' * (whole == 1)} {what}"


def before_first(record: StepRecord) -> Holds:
    """What every rank holds before the first step: what it has then, less what that step brings."""
    if not record.steps:
        return [[frozenset({rank})] * record.chunks for rank in range(record.ranks)]
    first = record.steps[0]
    holds = [list(row) for row in first.holds]
    for move in first.moves:
        holds[move.dst][move.chunk] -= move.contributors
    return holds


def _sentence(name: str) -> str:
    return name[:1].upper() + name[1:]


def _listed(ranks: Sequence[int]) -> str:
    *others, last = map(str, ranks)
    return f"{', '.join(others)} and {last}" if others else last
