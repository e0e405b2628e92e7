"""Submissions as students hand them in, made from the solutions: right, unwritten, and worse."""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat
from solved_notebooks import EXERCISES, SOLUTIONS

from course.grading.release import exercise_of

START = "00_start_here"
TENSOR = "02_tensor_parallel"


class Sheet:
    """A chapter's notebook, to be changed and handed in."""

    def __init__(self, chapter: str, folder: Path = SOLUTIONS) -> None:
        self.document = nbformat.read(folder / f"{chapter}.ipynb", as_version=4)
        self.chapter = chapter

    def source(self, exercise: str) -> str:
        """The cell that defines an exercise's function."""
        return str(self.document.cells[self._index(exercise)].source)

    def write(self, exercise: str, source: str) -> Sheet:
        """Put `source` in the place of an exercise's cell."""
        self.document.cells[self._index(exercise)].source = source
        return self

    def leave_blank(self, exercise: str) -> Sheet:
        """The stub, as it was handed out."""
        return self.write(exercise, Sheet(self.chapter, EXERCISES).source(exercise))

    def edit(self, exercise: str, old: str, new: str) -> Sheet:
        """Change a part of an exercise's cell that is there."""
        source = self.source(exercise)
        assert old in source, source
        return self.write(exercise, source.replace(old, new))

    def add_after(self, exercise: str, source: str) -> Sheet:
        """A new code cell after the one that defines an exercise's function."""
        cell = nbformat.v4.new_code_cell(source)
        self.document.cells.insert(self._index(exercise) + 1, cell)
        return self

    def repeat(self, exercise: str) -> Sheet:
        """The same cell once more at the end, as a slip of copy and paste makes it."""
        cell = copy.deepcopy(self.document.cells[self._index(exercise)])
        cell.id = f"{cell.id}-again"
        self.document.cells.append(cell)
        return self

    def forget_metadata(self) -> Sheet:
        """As tools leave it that keep no metadata."""
        self.document.metadata = nbformat.from_dict({})
        for cell in self.document.cells:
            cell.metadata = nbformat.from_dict({})
        return self

    def hand_in(self, root: Path, student: str, name: str | None = None) -> Path:
        """Save it as submissions/<student>/<name>."""
        path = root / student / (name or f"{self.chapter}.ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(self.document, path)
        return path

    def _index(self, exercise: str) -> int:
        cells = self.document.cells
        return next(i for i, cell in enumerate(cells) if exercise_of(cell) == exercise)
