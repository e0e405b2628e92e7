"""What is told about cells: which one, what befell it, and which exercise that belongs to."""

from __future__ import annotations

from course.grading.collector import Collection, cell_name, remarks, why_missing
from course.grading.submission import Notebook

NOTEBOOK = Notebook(
    (
        "import torch",
        "# YOUR CODE\n\ndef f(comm):\n    return 1",
        "f(1)",
        "def g(comm): return 2",
        "g(1)",
        "def f(comm): return 3",
    ),
    None,
)
NAMES = ["f", "g"]


def test_a_cell_is_known_by_its_number_and_first_line_of_code():
    assert cell_name(NOTEBOOK, 1) == "code cell 2 (`def f(comm):`)"
    long = Notebook(("x = " + "1 + " * 30 + "1",), None)
    assert len(cell_name(long, 0)) < 65
    assert cell_name(Notebook(("# only a comment",), None), 0) == "code cell 1 (`# only a comment`)"


def test_trouble_is_told_with_the_exercise_that_stands_before_it():
    collection = Collection(troubles={0: "broke", 2: "raised A", 4: "raised B"})
    assert remarks(NOTEBOOK, collection, NAMES, "g") == ["code cell 5 (`g(1)`) raised B"]
    assert remarks(NOTEBOOK, collection, NAMES, "f") == [
        "code cells 2 and 6 all define `f`; the last one counts",
        "code cell 1 (`import torch`) broke",
        "code cell 3 (`f(1)`) raised A",
    ]
    assert remarks(NOTEBOOK, Collection(), NAMES, "g") == []


def test_a_missing_function_says_which_cell_should_have_defined_it():
    collection = Collection(troubles={3: "raised SyntaxError: invalid syntax"})
    assert why_missing(NOTEBOOK, collection, "g") == (
        "code cell 4 (`def g(comm): return 2`), which defines `g`, "
        "raised SyntaxError: invalid syntax"
    )
    assert why_missing(NOTEBOOK, collection, "h") == "the notebook defines no function `h`"
    assert "code cell 6" in why_missing(NOTEBOOK, Collection(), "f")
