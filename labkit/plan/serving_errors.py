"""How far predicted serving rows are from measured ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from labkit.plan.closed_loop import LoopTime
from labkit.plan.serving_rows import ServingRow


@dataclass(frozen=True)
class RowError:
    """A measured row and what the model says of it."""

    row: ServingRow
    predicted: LoopTime

    @property
    def error(self) -> float:
        """Of TPOT, relative: 0.1 where the model says 10 % more."""
        return self.predicted.tpot / self.row.tpot - 1

    @property
    def ttft_error(self) -> float | None:
        """Of TTFT, relative; None where it was not measured."""
        return self.predicted.ttft / self.row.ttft - 1 if self.row.ttft else None

    @property
    def missed_seconds(self) -> float:
        """Measured TPOT less the predicted one."""
        return self.row.tpot - self.predicted.tpot


def mean_abs_error(errors: Iterable[RowError]) -> float:
    """The mean relative error of TPOT, without a sign. Raises ValueError for no row."""
    sizes = [abs(error.error) for error in errors]
    if not sizes:
        raise ValueError("there is no row to compare with; give at least one")
    return sum(sizes) / len(sizes)


def error_cells(errors: Iterable[RowError]) -> Mapping[tuple[int, int], float]:
    """`mean_abs_error` of each cell of TP and prompt tokens."""
    cells: defaultdict[tuple[int, int], list[RowError]] = defaultdict(list)
    for error in errors:
        cells[error.row.tp, error.row.prompt_tokens].append(error)
    return {cell: mean_abs_error(some) for cell, some in sorted(cells.items())}
