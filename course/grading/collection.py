"""What the cells of a notebook came to: the functions they define, and the trouble they had."""

from __future__ import annotations

from dataclasses import dataclass, field

from course.grading.handover import Taken
from course.grading.submission import Notebook

NOT_RUN = "did not run"
"""How the trouble of a cell begins that had no trouble of its own."""
_MOST_OF_A_LINE = 40


@dataclass
class Collection:
    """What a notebook defines.

    functions: by name. sources: name -> the code cell (from 0) that defined or checked it last.
    troubles: code cell -> how it failed, after "code cell 3". notes: on the notebook as a whole, in
    sentences. spent: seconds that cells ran. peak: most bytes resident.
    """

    functions: dict[str, Taken] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    troubles: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    spent: float = 0.0
    peak: int = 0


def cell_name(notebook: Notebook, cell: int) -> str:
    """`code cell 3 (def f(comm, x):)`: its number, and the line to know it by."""
    lines = [line.strip() for line in notebook.cells[cell].splitlines() if line.strip()]
    line = next((line for line in lines if not line.startswith("#")), lines[0])
    short = line if len(line) <= _MOST_OF_A_LINE else line[: _MOST_OF_A_LINE - 3] + "..."
    return f"code cell {cell + 1} (`{short}`)"
