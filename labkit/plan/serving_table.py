"""Serving rows from a CSV table, such as a benchmark's results."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from labkit.plan.serving_rows import ServingRow

COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "tp": ("tp", "tp_size"),
        "prompt_tokens": ("prompt_tokens", "isl", "input_len"),
        "output_tokens": ("output_tokens", "osl", "output_len"),
        "concurrency": ("concurrency", "batch_size", "max_concurrency"),
        "ttft_ms": ("ttft_ms", "silicon_ttft_ms", "mean_ttft_ms"),
        "tpot_ms": ("tpot_ms", "silicon_tpot_ms", "mean_tpot_ms"),
        "pp": ("pp", "pp_size"),
        "dp": ("dp", "attention_dp_size"),
        "ep": ("ep", "moe_ep_size"),
    }
)
"""What is read, and the names of columns it is read from. Times are milliseconds; `concurrency` is
the number of clients. The first four are needed, and one of the times."""
_NEEDED = ("tp", "prompt_tokens", "output_tokens", "concurrency")
_COUNTS = (*_NEEDED, "pp", "dp", "ep")


def read_serving_table(
    path: str | Path, *, length_share: float = 1.0, requests_per_client: float = 10.0
) -> tuple[ServingRow, ...]:
    """The rows of a CSV file with a line of column names.

    Args:
        length_share, requests_per_client: of all rows, as in `ServingRow`.

    Raises:
        ValueError: a column is missing, or a cell cannot be; the message names both.
        FileNotFoundError: there is no such file.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        found = _columns(table.fieldnames or ())
        return tuple(
            _row(cells, found, number, length_share, requests_per_client)
            for number, cells in enumerate(table, start=2)
        )


def _columns(names: Iterable[str]) -> dict[str, str]:
    given = {name.strip().lower(): name for name in names}
    found = {
        what: given[next(name for name in aliases if name in given)]
        for what, aliases in COLUMNS.items()
        if any(name in given for name in aliases)
    }
    missing = [what for what in _NEEDED if what not in found]
    if not missing and not {"ttft_ms", "tpot_ms"} & set(found):
        missing = ["tpot_ms"]
    if missing:
        legal = "; ".join(f"{what}: {' or '.join(COLUMNS[what])}" for what in missing)
        raise ValueError(f"the table has the columns {', '.join(given)}; it lacks {legal}")
    return found


def _row(
    cells: Mapping[str, str], found: Mapping[str, str], number: int, share: float, requests: float
) -> ServingRow:
    values: dict[str, float] = {}
    for what, column in found.items():
        text = (cells[column] or "").strip()
        if not text and what not in _NEEDED:
            continue
        try:
            values[what] = float(text)
        except ValueError:
            raise ValueError(f"line {number}: {column} is {text!r}; it must be a number") from None
    counts = {what: _whole(values.pop(what)) for what in _COUNTS if what in values}
    try:
        return ServingRow(
            **counts,
            ttft=values.get("ttft_ms", 0.0) * 1e-3,
            tpot=values.get("tpot_ms", 0.0) * 1e-3,
            length_share=share,
            requests_per_client=requests,
        )
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None


def _whole(value: float) -> int:
    return int(value) if value.is_integer() else value  # type: ignore[return-value]
