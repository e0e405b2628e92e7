"""Times of collectives for a reader: a table in the terminal."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console
from rich.table import Table

from labkit.experiments.collective_rows import CollectiveRow, CollectiveTimes
from labkit.experiments.size_list import size_text

_PLAIN_WIDTH = 110
"""Columns where the output is no terminal, such as a file: nothing is cut off there."""


def print_times(times: CollectiveTimes, stream: TextIO | None = None) -> None:
    """One table for each collective and number of ranks, then where the figures come from."""
    stream = stream or sys.stdout
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        console = Console(file=stream, highlight=False, width=_PLAIN_WIDTH)
    for op, ranks in dict.fromkeys((row.op, row.ranks) for row in times.rows):
        rows = [row for row in times.rows if (row.op, row.ranks) == (op, ranks)]
        console.print(_table(f"{op}, {ranks} ranks, {times.dtype} (measured)", rows))
    console.print("x gloo: times as fast as gloo, the median of the ratios within each turn")
    for _, reason in times.left_out:
        console.print(f"left out: {reason}", soft_wrap=True, markup=False)
    console.print(times.source, soft_wrap=True, markup=False)


def seconds_text(seconds: float) -> str:
    """Three digits with a unit."""
    for unit, step in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= step:
            return f"{seconds / step:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _table(title: str, rows: list[CollectiveRow]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("payload", justify="right")
    table.add_column("implementation")
    for heading in ("median", "quartiles", "fastest", "x gloo"):
        table.add_column(heading, justify="right")
    size = None
    for row in rows:
        gloo = next((r for r in rows if _is_gloo_beside(r, row)), None)
        first, third = row.quartiles
        if size not in (None, row.payload_bytes):
            table.add_section()
        table.add_row(
            "" if row.payload_bytes == size else size_text(row.payload_bytes),
            row.implementation,
            seconds_text(row.seconds),
            f"{seconds_text(first)} - {seconds_text(third)}",
            seconds_text(row.fastest),
            "" if gloo is None else f"{row.times_as_fast_as(gloo):.2f}",
        )
        size = row.payload_bytes
    return table


def _is_gloo_beside(other: CollectiveRow, row: CollectiveRow) -> bool:
    return other.implementation == "gloo" and other.payload_bytes == row.payload_bytes
