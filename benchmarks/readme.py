"""The decode figures that the README quotes, written from the stored result.

python -m benchmarks.readme            # print them; a test compares the README with this
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.bars import BATCHES, DTYPES
from benchmarks.rows import Row, find, row_from_dict
from benchmarks.sides import (
    BOUND,
    DTENSOR,
    LLAMA_CPP,
    OURS,
    OURS_GLOO,
    TRANSFORMERS,
    TRANSFORMERS_TP,
)

RESULT = Path(__file__).parent / "results" / "decode.json"
LINES = (
    ("labkit, 1 rank", OURS, 1),
    ("transformers", TRANSFORMERS, 1),
    ("llama.cpp (portable AVX2 wheel)", LLAMA_CPP, 1),
    ("bound", BOUND, 1),
    ("labkit, 2 ranks", OURS, 2),
    ("labkit, 2 ranks over gloo", OURS_GLOO, 2),
    ("labkit, 3 ranks", OURS, 3),
    ("transformers tensor parallel, 3 ranks", TRANSFORMERS_TP, 3),
    ("DTensor, 3 ranks", DTENSOR, 3),
)


def decode_table(result: Mapping[str, Any]) -> str:
    """A Markdown table of tokens per second, one thread per rank, and where it was measured."""
    rows = [row_from_dict(fields) for fields in result["rows"]]
    columns = [(dtype, batch) for dtype in DTYPES for batch in BATCHES]
    head = "| | " + " | ".join(f"{dtype}, batch {batch}" for dtype, batch in columns) + " |"
    lines = [head, "|---|" + "---:|" * len(columns)]
    for title, side, ranks in LINES:
        cells = [_speed(find(rows, side, *column, ranks=ranks)) for column in columns]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    made = result["provenance"]
    torch = made["packages"]["torch"]
    place = f"{made['cpu']}, {made['cores']} cores, torch {torch}, {made['date'][:10]}"
    return "\n".join([*lines, "", f"Measured on {place}, commit {made['commit'][:10]}.", ""])


def _speed(row: Row | None) -> str:
    speed = row.tokens_per_second if row else None
    return "failed" if speed is None else f"{float(f'{speed:.3g}'):,g}"


if __name__ == "__main__":
    print(decode_table(json.loads(RESULT.read_text())))
