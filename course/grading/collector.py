"""A notebook's cells run, one by one, to collect the functions that its exercises ask for.

Nothing is judged here. A cell that fails costs what it defines. A cell that ends its kernel, or has
to be ended, is left out, and the others run again in a new kernel.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from course.grading.kernel_session import KernelSession, KernelStartError, Taken
from course.grading.submission import Notebook
from course.grading.workshop import Workshop

MOST_KERNELS = 4
MOST_CELL_TIMEOUTS = 8
"""The cells of a notebook may take so many times the limit of one, together."""
_SECONDS_THE_SECOND_TIME = 5.0
_TAKE_SECONDS = 20.0
_MOST_OF_A_LINE = 40
_NOT_RUN = "did not run"


@dataclass
class Collection:
    """What a notebook defines.

    functions: by name. troubles: code cell (from 0) -> how it failed, after "code cell 3". notes:
    what befell the cells, in sentences. spent: seconds that cells ran. peak: most bytes resident.
    """

    functions: dict[str, Taken] = field(default_factory=dict)
    troubles: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    spent: float = 0.0
    peak: int = 0


def collect(
    workshop: Workshop,
    notebook: Notebook,
    names: Sequence[str],
    *,
    cell_timeout: float,
    memory: int,
) -> Collection:
    """Run the cells of `notebook` in order and take the functions called `names`.

    cell_timeout: seconds that one cell may take. memory: bytes that the kernel and all it starts
    may have resident. Raises KernelStartError when no kernel starts, whatever the notebook says.
    """
    collection = Collection()
    fatal: set[int] = set()
    for _ in range(MOST_KERNELS):
        with _kernel(workshop, memory) as kernel:
            lost = _run_cells(kernel, notebook, names, collection, fatal, cell_timeout)
        collection.peak = max(collection.peak, kernel.peak)
        if lost is None:
            break
        fatal.add(lost)
    else:
        collection.notes.append(
            f"The notebook ended its kernel {MOST_KERNELS} times; only what was defined before "
            f"counts"
        )
    for cell, trouble in sorted(collection.troubles.items()):
        collection.notes.append(f"{cell_name(notebook, cell)} {trouble}")
        if trouble.startswith(_NOT_RUN):
            collection.notes[-1] += "; nor did those after it"
            break
    return collection


def why_missing(notebook: Notebook, collection: Collection, name: str) -> str:
    """Why there is no function `name`, in a sentence."""
    cells = notebook.cells_defining(name)
    if not cells:
        return f"the notebook defines no function `{name}`"
    for cell in reversed(cells):
        if cell in collection.troubles:
            trouble = collection.troubles[cell]
            return f"{cell_name(notebook, cell)}, which defines `{name}`, {trouble}"
    last = cell_name(notebook, cells[-1])
    return f"`{name}` is not there once all cells have run, though {last} names it"


def remarks(
    notebook: Notebook, collection: Collection, names: Sequence[str], name: str
) -> list[str]:
    """What to tell beside the verdicts on `name`, in sentences.

    That several cells define it, and what befell the cells from its definition up to the next one
    of `names`; what stands before all of them goes with the first.
    """
    told: list[str] = []
    cells = notebook.cells_defining(name)
    if len(cells) > 1:
        listed = ", ".join(str(cell + 1) for cell in cells[:-1])
        told.append(
            f"code cells {listed} and {cells[-1] + 1} all define `{name}`; the last one counts"
        )
    definers = {cell: own for own in names for cell in notebook.cells_defining(own)}
    owner = definers[min(definers)] if definers else None
    for cell in range(len(notebook.cells)):
        owner = definers.get(cell, owner)
        if owner == name and cell in collection.troubles:
            told.append(f"{cell_name(notebook, cell)} {collection.troubles[cell]}")
    return told


def cell_name(notebook: Notebook, cell: int) -> str:
    """`code cell 3 (def f(comm, x):)`: its number, and the line to know it by."""
    lines = [line.strip() for line in notebook.cells[cell].splitlines() if line.strip()]
    line = next((line for line in lines if not line.startswith("#")), lines[0])
    short = line if len(line) <= _MOST_OF_A_LINE else line[: _MOST_OF_A_LINE - 3] + "..."
    return f"code cell {cell + 1} (`{short}`)"


def _kernel(workshop: Workshop, memory: int) -> KernelSession:
    try:
        return KernelSession(workshop, memory)
    except KernelStartError:
        return KernelSession(workshop, memory)


def _run_cells(
    kernel: KernelSession,
    notebook: Notebook,
    names: Sequence[str],
    collection: Collection,
    fatal: set[int],
    cell_timeout: float,
) -> int | None:
    """Run every cell not in `fatal`; the one that cost the kernel, or None when all have run."""
    defined_in: Mapping[int, bool] = {
        cell: True for name in names for cell in notebook.cells_defining(name)
    }
    for cell, source in enumerate(notebook.cells):
        if cell in fatal or not source.strip():
            continue
        seconds = min(cell_timeout, MOST_CELL_TIMEOUTS * cell_timeout - collection.spent)
        if "ran longer" in collection.troubles.get(cell, ""):
            seconds = min(seconds, _SECONDS_THE_SECOND_TIME)
        if seconds <= 0:
            collection.troubles[cell] = (
                f"{_NOT_RUN}: the cells before it took {MOST_CELL_TIMEOUTS * cell_timeout:g} s"
            )
            continue
        started = time.monotonic()
        end = kernel.run(source, seconds)
        collection.spent += time.monotonic() - started
        if end.trouble:
            collection.troubles[cell] = end.trouble
        else:
            collection.troubles.pop(cell, None)
        if end.is_lost:
            return cell
        if cell in defined_in:
            collection.functions.update(kernel.take(names, _TAKE_SECONDS, only_new=True))
    collection.functions.update(kernel.take(names, _TAKE_SECONDS, only_new=False))
    return None
