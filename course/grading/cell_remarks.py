"""What is told of a notebook's cells: which one, what befell it, and which exercise it concerns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from course.grading.collection import NOT_RUN, Collection, cell_name
from course.grading.submission import Notebook

_SET_UP = re.compile(r"NameError: name '(torch|check)' is not defined")


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


def remarks(notebook: Notebook, collection: Collection, name: str) -> list[str]:
    """What to tell beside the verdicts on `name`, in sentences.

    Which of several definitions counts, and what befell the cells that define it. What befell
    others is no matter of this exercise: see `notes_told`.
    """
    return [
        *_which_counts(notebook, collection, name),
        *troubles_told(notebook, collection, notebook.cells_defining(name)),
    ]


def notes_told(notebook: Notebook, collection: Collection) -> list[str]:
    """A sentence for each cell in trouble; what a missing first cell causes, once for all."""
    unnamed = [cell for cell, told in collection.troubles.items() if _SET_UP.search(told)]
    others = [cell for cell in range(len(notebook.cells)) if cell not in unnamed]
    told = troubles_told(notebook, collection, others)
    if not unnamed:
        return told
    cells = ", ".join(str(cell + 1) for cell in sorted(unnamed))
    plural = "s" if len(unnamed) > 1 else ""
    return [
        f"The cell that imports torch and check is missing or was not run, so code cell{plural} "
        f"{cells} raised NameError",
        *told,
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
