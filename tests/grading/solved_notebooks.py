"""The notebooks of `solutions/` and `exercises/`, as functions and cells that tests look at."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from course.bootstrap import CELL_ID
from course.grading.release import EXERCISES, SOLUTIONS, exercise_of

__all__ = ["EXERCISES", "SOLUTIONS", "Definition", "cells", "definition", "functions"]


@dataclass(frozen=True)
class Definition:
    """A function as a cell spells it."""

    name: str
    parameters: tuple[str, ...]
    signature: str
    docstring: str


def cells(folder: Path, chapter: str) -> list[NotebookNode]:
    """The cells of a chapter's notebook."""
    notebook = nbformat.read(folder / f"{chapter}.ipynb", as_version=4)
    return list(notebook.cells)


def definition(folder: Path, chapter: str, exercise: str) -> Definition:
    """The function that an exercise's cell defines. AssertionError unless there is just one."""
    (cell,) = [cell for cell in cells(folder, chapter) if exercise_of(cell) == exercise]
    (function,) = [
        node for node in ast.parse(cell.source).body if isinstance(node, ast.FunctionDef)
    ]
    arguments = function.args
    assert arguments.vararg is arguments.kwarg is None
    assert not arguments.posonlyargs
    return Definition(
        name=function.name,
        parameters=tuple(a.arg for a in (*arguments.args, *arguments.kwonlyargs)),
        signature=f"({ast.unparse(arguments)}) -> "
        f"{ast.unparse(function.returns) if function.returns else None}",
        docstring=ast.get_docstring(function) or "",
    )


@functools.cache
def functions(folder: Path, chapter: str) -> dict[str, Callable[..., Any]]:
    """Exercise -> its function, defined as a kernel would: in no module that can be imported."""
    space: dict[str, Any] = {"__name__": f"notebook_{folder.name}_{chapter}"}
    found: dict[str, Callable[..., Any]] = {}
    for cell in cells(folder, chapter):
        if cell.cell_type != "code" or cell.id == CELL_ID or cell.id.endswith("-check"):
            continue
        exec(compile(cell.source, f"<{folder.name} {cell.id}>", "exec"), space)
        name = exercise_of(cell)
        if name is not None:
            found[name] = space[definition(folder, chapter, name).name]
    return found
