"""What timing collectives gives: seconds of every turn, by implementation, collective and size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from labkit.experiments.provenance import Provenance
from labkit.plan.calibration import Point


@dataclass(frozen=True)
class CollectiveRow:
    """One implementation of one collective at one size."""

    op: str
    """As `Comm` calls it."""
    implementation: str
    ranks: int
    payload_bytes: int
    """All that is reduced, returned by all_gather, taken by reduce_scatter and all_to_all."""
    calls: int
    """How many a turn made, one right after the other."""
    turn_seconds: tuple[float, ...]
    """Of one call on the slowest rank, one value for each turn."""

    @property
    def seconds(self) -> float:
        """Median over the turns."""
        return median(self.turn_seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """A quarter of the turns took at most the first, a quarter at least the second."""
        if len(self.turn_seconds) == 1:
            return self.turn_seconds[0], self.turn_seconds[0]
        first, _, third = quantiles(self.turn_seconds, n=4, method="inclusive")
        return first, third

    @property
    def fastest(self) -> float:
        """The turn least disturbed."""
        return min(self.turn_seconds)

    def times_as_fast_as(self, other: CollectiveRow) -> float:
        """Median over the turns of the ratio within a turn: what slows both leaves it alone."""
        pairs = zip(other.turn_seconds, self.turn_seconds, strict=True)
        return median(theirs / mine for theirs, mine in pairs)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, derived figures included."""
        derived = {"seconds": self.seconds, "quartiles": self.quartiles, "fastest": self.fastest}
        return asdict(self) | derived


@dataclass(frozen=True)
class CollectiveTimes:
    """Every row of a run, and how it was made."""

    rows: tuple[CollectiveRow, ...]
    dtype: str
    device: str
    """What holds the tensors: the CPU, or the kind of GPU."""
    order: str
    """In which order the turns were taken."""
    left_out: tuple[tuple[str, str], ...]
    """Implementations that could not take part, and why."""
    provenance: Provenance

    def row(
        self, implementation: str, op: str, ranks: int, payload_bytes: int
    ) -> CollectiveRow | None:
        """The one row of these four; None if it was not measured."""
        key = (implementation, op, ranks, payload_bytes)
        for row in self.rows:
            if (row.implementation, row.op, row.ranks, row.payload_bytes) == key:
                return row
        return None

    def points(self, implementation: str, op: str = "all_reduce") -> list[Point]:
        """Medians, as `labkit.plan.calibration.calibrate` takes them; all rank counts together."""
        return [
            Point(ranks=row.ranks, payload_bytes=row.payload_bytes, seconds=row.seconds)
            for row in self.rows
            if (row.implementation, row.op) == (implementation, op)
        ]

    @property
    def source(self) -> str:
        """Where the figures come from, in one line."""
        return f"{self.provenance}; {self.device}; {self.order}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "provenance": self.provenance.as_dict(),
            "dtype": self.dtype,
            "device": self.device,
            "order": self.order,
            "left_out": dict(self.left_out),
            "rows": [row.as_dict() for row in self.rows],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> CollectiveTimes:
        """Inverse of `as_dict`. Raises ValueError where a field is missing."""
        try:
            rows = tuple(map(_row_from_dict, fields["rows"]))
            return cls(
                rows=rows,
                dtype=fields["dtype"],
                device=fields["device"],
                order=fields["order"],
                left_out=tuple(fields["left_out"].items()),
                provenance=Provenance.from_dict(fields["provenance"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"these are no times of collectives: {error!r}") from None


def read_times(file: Path) -> CollectiveTimes:
    """What `labkit bench collectives --json FILE` wrote."""
    return CollectiveTimes.from_dict(json.loads(file.read_text()))


def together(parts: Sequence[CollectiveTimes]) -> CollectiveTimes:
    """One result from several of one kind, such as one for each number of ranks."""
    return replace(
        parts[0],
        rows=tuple(row for part in parts for row in part.rows),
        left_out=tuple(dict(entry for part in parts for entry in part.left_out).items()),
    )


def _row_from_dict(fields: Mapping[str, Any]) -> CollectiveRow:
    known = {name: fields[name] for name in CollectiveRow.__dataclass_fields__}
    return CollectiveRow(**known | {"turn_seconds": tuple(known["turn_seconds"])})
