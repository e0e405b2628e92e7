"""What an algorithm made of sends and receives did, step by step: plain data, without torch.

Each rank writes down its own side while it runs: what it sent, and what it added or kept of what
came. `merge_records` puts the sides together, follows every chunk from rank to rank, and so knows
whose values each rank holds in each chunk after each step.

A step is what waits for the step before it. Messages of one step may travel at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Cell = frozenset[int]
"""The ranks whose values are summed in one chunk; empty: nothing valid is there."""


@dataclass(frozen=True)
class Move:
    """One chunk on its way from rank `src` to rank `dst`, with the values of `contributors`."""

    src: int
    dst: int
    chunk: int
    contributors: Cell


@dataclass(frozen=True)
class Step:
    """One step of all ranks.

    number: 1, 2, ... phase: "reduce-scatter", "all-gather", ...
    moves: by sender, in the order in which it sent. holds: by rank, then chunk, after the step.
    """

    number: int
    phase: str
    moves: tuple[Move, ...]
    holds: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class StepRecord:
    """A whole run: `ranks` ranks, each with `chunks` chunks."""

    algorithm: str
    ranks: int
    chunks: int
    steps: tuple[Step, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same as dicts, lists, strings and ints: what JSON can carry. Ranks are sorted."""
        plain = _plain(asdict(self))
        assert isinstance(plain, dict)
        return plain


@dataclass(frozen=True)
class Arrival:
    """A chunk that came from rank `src`: added to what was there, or put in its place."""

    chunk: int
    src: int
    is_added: bool


@dataclass
class RankStep:
    """One step as one rank saw it; empty where the rank had nothing to do."""

    phase: str
    sent_chunks: list[tuple[int, int]] = field(default_factory=list)  # (chunk, to which rank)
    arrivals: list[Arrival] = field(default_factory=list)

    def sent(self, chunk: int, dst: int) -> RankStep:
        """Note that I sent `chunk` to rank `dst`."""
        self.sent_chunks.append((chunk, dst))
        return self

    def added(self, chunk: int, src: int) -> RankStep:
        """Note that I reduced what rank `src` sent into my `chunk`."""
        self.arrivals.append(Arrival(chunk, src, is_added=True))
        return self

    def kept(self, chunk: int, src: int) -> RankStep:
        """Note that what rank `src` sent is my `chunk` now."""
        self.arrivals.append(Arrival(chunk, src, is_added=False))
        return self


@dataclass
class Record:
    """One rank's side of a run. Pass an empty one to an algorithm, then give it to `merge_records`.

    algorithm, rank, ranks, chunks: filled in when the run begins.
    own: the chunks that hold this rank's values before the first step.
    """

    algorithm: str = ""
    rank: int = 0
    ranks: int = 0
    chunks: int = 0
    own: tuple[int, ...] = ()
    steps: list[RankStep] = field(default_factory=list)

    def begin(self, algorithm: str, rank: int, ranks: int, chunks: int, own: Iterable[int]) -> None:
        """Note what runs here. Raises ValueError if this record has a run already."""
        if self.algorithm:
            raise ValueError(
                f"this record holds a run of the {self.algorithm} already; pass a new Record()"
            )
        self.algorithm, self.rank, self.ranks = algorithm, rank, ranks
        self.chunks, self.own = chunks, tuple(own)

    def step(self, phase: str) -> RankStep:
        """Begin a step. Every rank does so for every step, whether or not it has a part in it.

        A step in which no rank has a part is none: `merge_records` leaves it out.
        """
        self.steps.append(RankStep(phase))
        return self.steps[-1]


def merge_records(records: Sequence[Record]) -> StepRecord:
    """All ranks' records of one run, in any order, as one.

    Raises:
        ValueError: they are not the records of one run: a rank is missing or there twice, the
            algorithms or steps differ, a chunk was sent that nobody took or the other way round;
            or the run is wrong: a rank's values were added twice, or a chunk without values was
            sent.
    """
    by_rank = sorted(records, key=lambda record: record.rank)
    _check_one_run(by_rank)
    first = by_rank[0]
    holds = [
        [frozenset({r.rank} if chunk in r.own else ()) for chunk in range(first.chunks)]
        for r in by_rank
    ]
    steps: list[Step] = []
    for sides in zip(*(r.steps for r in by_rank), strict=True):
        number = len(steps) + 1
        moves = _moves(number, sides, holds)
        if not moves:
            continue
        holds = _after(number, sides, holds)
        steps.append(Step(number, sides[0].phase, moves, tuple(map(tuple, holds))))
    return StepRecord(first.algorithm, first.ranks, first.chunks, tuple(steps))


def _moves(number: int, sides: Sequence[RankStep], holds: list[list[Cell]]) -> tuple[Move, ...]:
    """What was sent in a step, by sender; each chunk with what its sender held before the step."""
    sent = [(src, dst, chunk) for src, side in enumerate(sides) for chunk, dst in side.sent_chunks]
    came = [(a.src, dst, a.chunk) for dst, side in enumerate(sides) for a in side.arrivals]
    if sorted(sent) != sorted(came):
        src, dst, chunk = sorted(set(sent) ^ set(came) or set(sent))[0]
        raise ValueError(
            f"step {number}: what the ranks sent is not what they took; "
            f"look at chunk {chunk} from rank {src} to rank {dst}"
        )
    for src, dst, chunk in sent:
        if not holds[src][chunk]:
            raise ValueError(
                f"step {number}: rank {src} sends chunk {chunk} to rank {dst} and has no values "
                f"in it"
            )
    return tuple(Move(src, dst, chunk, holds[src][chunk]) for src, dst, chunk in sent)


def _after(number: int, sides: Sequence[RankStep], holds: list[list[Cell]]) -> list[list[Cell]]:
    """What every rank holds after a step."""
    after = [list(row) for row in holds]
    for dst, side in enumerate(sides):
        for arrival in side.arrivals:
            came = holds[arrival.src][arrival.chunk]
            here = after[dst][arrival.chunk] if arrival.is_added else frozenset()
            if here & came:
                raise ValueError(
                    f"step {number}: rank {dst} adds the values of rank {min(here & came)} to "
                    f"chunk {arrival.chunk} for the second time"
                )
            after[dst][arrival.chunk] = here | came
    return after


def _check_one_run(records: Sequence[Record]) -> None:
    """`records` (by rank) are the sides of one run."""
    if not records:
        raise ValueError("no records; pass those of all ranks, as pool.run returns them")
    first = records[0]
    if not first.algorithm:
        raise ValueError("the record is empty; pass it to an algorithm as record= first")
    ranks = [record.rank for record in records]
    if ranks != list(range(first.ranks)):
        raise ValueError(f"records of ranks {ranks}; a run of {first.ranks} needs one of each rank")
    for other in records[1:]:
        for what in ("algorithm", "ranks", "chunks"):
            here, there = getattr(first, what), getattr(other, what)
            if here != there:
                raise ValueError(
                    f"records of two runs: {what} is {here!r} on rank 0 and "
                    f"{there!r} on rank {other.rank}"
                )
        phases = [[step.phase for step in record.steps] for record in (first, other)]
        if phases[0] != phases[1]:
            raise ValueError(
                f"rank 0 went through {len(phases[0])} steps ({', '.join(phases[0])}) and "
                f"rank {other.rank} through {len(phases[1])} ({', '.join(phases[1])})"
            )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value
