"""From solutions to exercises: students get the solved notebook with its bodies taken out.

`python -m course.grading.release solutions/*.ipynb` (or `make exercises`) writes notebooks of the
same name to `exercises/`. What lies between `### BEGIN SOLUTION` and `### END SOLUTION` becomes the
stub that nbgrader writes, outputs go, ids and metadata stay: so `solutions/` is an nbgrader source
as well. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.bootstrap import repository, write_bootstrap

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
ROOT = Path(__file__).parents[2]
SOLUTIONS, EXERCISES = ROOT / "solutions", ROOT / "exercises"

_KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class ReleaseError(ValueError):
    """A solved notebook from which no exercise can be made."""


def exercise_of(cell: NotebookNode) -> str | None:
    """The exercise whose function a cell defines, as its metadata says; None: another cell."""
    name = cell.metadata.get("labkit", {}).get("exercise")
    return None if name is None else str(name)


def without_solution(source: str) -> str:
    """A cell's source with each solution replaced by the stub, indented as its marker is."""
    kept: list[str] = []
    inside = False
    for line in source.split("\n"):
        marker = line.strip()
        if marker == BEGIN:
            if inside:
                raise ReleaseError(f"a second {BEGIN!r} before {END!r}")
            inside = True
            indent = line[: line.index(BEGIN)]
            kept += [indent + stub for stub in STUB]
        elif marker == END:
            if not inside:
                raise ReleaseError(f"{END!r} without {BEGIN!r}")
            inside = False
        elif not inside:
            kept.append(line)
    if inside:
        raise ReleaseError(f"{BEGIN!r} without {END!r}")
    return "\n".join(kept)


def exercise_notebook(solved: NotebookNode) -> NotebookNode:
    """The notebook that students get.

    Raises ReleaseError, naming the cell, when markers do not pair or stand in a cell whose
    metadata names no exercise, and when a cell that names one has no solution.
    """
    document = copy.deepcopy(solved)
    for cell in document.cells:
        try:
            source = without_solution(cell.source)
        except ReleaseError as error:
            raise ReleaseError(f"cell {cell.id!r}: {error}") from None
        has_solution, name = source != cell.source, exercise_of(cell)
        if has_solution and name is None:
            raise ReleaseError(
                f"cell {cell.id!r} holds a solution, and its metadata names no exercise"
            )
        if name is not None and not has_solution:
            raise ReleaseError(f"cell {cell.id!r} is exercise {name!r} and has no {BEGIN!r}")
        cell.source = source
    _clear_outputs(document)
    return document


def _clear_outputs(document: NotebookNode) -> None:
    for cell in document.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def release(solution: Path, folder: Path = EXERCISES) -> Path:
    """Makes the exercise of one solved notebook; the path written.

    The solved notebook itself is brought in order first: Colab cell in step, no outputs.
    """
    write_bootstrap(solution, repository())
    solved = nbformat.read(solution, as_version=4)
    solved.metadata = nbformat.from_dict(
        {**_KERNEL, **{key: solved.metadata[key] for key in ("labkit",) if key in solved.metadata}}
    )
    _clear_outputs(solved)
    nbformat.write(solved, solution)
    folder.mkdir(exist_ok=True)
    path = folder / solution.name
    nbformat.write(exercise_notebook(solved), path)
    return path


def main(argv: list[str] | None = None) -> None:
    """Command line: releases the notebooks named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m course.grading.release", description=__doc__)
    parser.add_argument("solutions", nargs="*", type=Path)
    given = parser.parse_args(argv).solutions
    for path in given or sorted(SOLUTIONS.glob("*.ipynb")):
        print(f"{path} -> {release(path)}")


if __name__ == "__main__":
    main()
