"""Exercises are made from solutions: what goes, what stays, and what is refused."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from course.bootstrap import CELL_ID
from course.grading.release import (
    ReleaseError,
    exercise_notebook,
    exercise_of,
    release,
    without_solution,
)

SOLVED = '''\
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION'''
STUB = '''\
def double(x):
    """Twice x."""
    # YOUR CODE HERE
    raise NotImplementedError()'''


def notebook(source: str = SOLVED, name: str | None = "double") -> NotebookNode:
    cell = nbformat.v4.new_code_cell(source, id="double", execution_count=3)
    cell.outputs = [nbformat.v4.new_output("stream", text="42\n")]
    cell.metadata["nbgrader"] = {"grade_id": "double", "solution": True}
    if name is not None:
        cell.metadata["labkit"] = {"exercise": name}
    words = nbformat.v4.new_markdown_cell("Double a number.", id="double-statement")
    document = nbformat.v4.new_notebook(cells=[words, cell])
    document.metadata["labkit"] = {"chapter": "02_tensor_parallel"}
    return document


def test_a_body_becomes_the_stub_of_nbgrader_and_the_rest_stays():
    assert without_solution(SOLVED) == STUB


def test_every_region_of_a_cell_is_replaced_with_its_own_indent():
    two = f"{SOLVED}\n\n### BEGIN SOLUTION\nanswer = 42\n### END SOLUTION\nprint(1)"
    stub = "\n\n# YOUR CODE HERE\nraise NotImplementedError()\nprint(1)"
    assert without_solution(two) == STUB + stub


def test_outputs_go_and_ids_and_metadata_stay():
    solved = notebook()
    made = exercise_notebook(solved)
    assert [cell.id for cell in made.cells] == ["double-statement", "double"]
    assert made.metadata == solved.metadata
    cell = made.cells[1]
    assert cell.outputs == []
    assert cell.execution_count is None
    assert cell.metadata == solved.cells[1].metadata
    assert exercise_of(cell) == "double"
    assert solved.cells[1].source == SOLVED, "the solved notebook itself is left alone"


@pytest.mark.parametrize(
    ("source", "name", "told"),
    [
        ("### BEGIN SOLUTION\nx = 1", "double", "without '### END SOLUTION'"),
        ("x = 1\n### END SOLUTION", "double", "without '### BEGIN SOLUTION'"),
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", "double", "second"),
        (SOLVED, None, "names no exercise"),
        ("x = 1", "double", "has no"),
    ],
)
def test_markers_that_do_not_pair_are_refused_with_the_cell(
    source: str, name: str | None, told: str
):
    with pytest.raises(ReleaseError, match=told) as refused:
        exercise_notebook(notebook(source, name))
    assert "'double'" in str(refused.value)


def test_releasing_twice_gives_the_same_bytes_and_keeps_the_chapter(tmp_path: Path):
    solution = tmp_path / "02_tensor_parallel.ipynb"
    nbformat.write(notebook(), solution)
    first = release(solution, tmp_path / "exercises").read_bytes()
    solved = solution.read_bytes()
    assert release(solution, tmp_path / "exercises").read_bytes() == first
    assert solution.read_bytes() == solved
    made = nbformat.read(tmp_path / "exercises" / solution.name, as_version=4)
    assert made.metadata.labkit.chapter == "02_tensor_parallel"
    assert made.cells[0].id == CELL_ID
    assert b"42" not in solved, "no outputs are kept in the solved notebook"
