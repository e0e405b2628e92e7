"""What is told of a notebook's cells: which one, what befell it, and which exercise it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course.grading.collection import NOT_RUN, Collection, cell_name
from course.grading.submission import Notebook


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

    Which of several definitions counts, and what befell the cells from its definition up to the
    next one of `names`; what stands before all of them goes with the first.
    """
    definers = {cell: own for own in names for cell in notebook.cells_defining(own)}
    owner = definers[min(definers)] if definers else None
    own_cells: list[int] = []
    for cell in range(len(notebook.cells)):
        owner = definers.get(cell, owner)
        if owner == name:
            own_cells.append(cell)
    return [
        *_which_counts(notebook, collection, name),
        *troubles_told(notebook, collection, own_cells),
    ]


def troubles_told(notebook: Notebook, collection: Collection, cells: Iterable[int]) -> list[str]:
    """A sentence for each cell in trouble; those that one thing kept from running share it."""
    found: dict[str, list[int]] = {}
    told: list[tuple[str, list[int]]] = []
    for cell in cells:
        trouble = collection.troubles.get(cell, "")
        if trouble in found and trouble.startswith(NOT_RUN):
            found[trouble].append(cell)
        elif trouble:
            found[trouble] = [cell]
            told.append((trouble, found[trouble]))
    sentences: list[str] = []
    for trouble, (first, *more) in told:
        sentence = f"{cell_name(notebook, first)} {trouble}"
        if more:
            plural = "s" if len(more) > 1 else ""
            sentence += f"; nor did {len(more)} cell{plural} after it"
        sentences.append(sentence)
    return sentences


def _which_counts(notebook: Notebook, collection: Collection, name: str) -> list[str]:
    cells = notebook.cells_defining(name)
    if len(cells) < 2 or name not in collection.functions:
        return []
    listed = ", ".join(str(cell + 1) for cell in cells[:-1])
    told = f"code cells {listed} and {cells[-1] + 1} all define `{name}`; "
    source = collection.sources.get(name)
    if collection.functions[name].is_checked:
        return [f"{told}the one that code cell {(source or 0) + 1} checks counts"]
    if source == cells[-1]:
        return [f"{told}the last one counts"]
    if source is None:
        return [f"{told}what it was at the end counts"]
    return [f"{told}the one of code cell {source + 1} counts"]
