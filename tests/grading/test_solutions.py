"""`exercises/` are the released `solutions/`, give nothing away, and agree with the judge."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from solved_notebooks import EXERCISES, SOLUTIONS, cells, definition

from course.bootstrap import CELL_ID, bootstrap_source, repository
from course.exercises import CHAPTERS, load
from course.grading.exercise import Exercise
from course.grading.release import BEGIN, END, exercise_of, release

EXERCISE_NAMES = [(chapter, name) for chapter, names in CHAPTERS.items() for name in names]
MIN_TELLING_CHARACTERS = 12
"""Of a line without blanks: shorter ones, such as `return out`, tell nothing."""

chapters = pytest.mark.parametrize("chapter", CHAPTERS)
exercises = pytest.mark.parametrize(
    ("chapter", "name"), EXERCISE_NAMES, ids=[name for _, name in EXERCISE_NAMES]
)


def solution_lines() -> set[str]:
    """Every telling line of every solution body, without blanks."""
    found: set[str] = set()
    for path in SOLUTIONS.glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            for body in re.findall(f"{BEGIN}(.*?){END}", cell.source, re.DOTALL):
                found |= {squeezed(line) for line in body.splitlines()}
    return {line for line in found if len(line) >= MIN_TELLING_CHARACTERS}


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def leaks(text: str) -> list[str]:
    """Lines of solutions that `text` holds."""
    whole = squeezed(text)
    return sorted(line for line in solution_lines() if line in whole)


def test_there_is_a_notebook_for_every_chapter_and_no_other():
    for folder in (SOLUTIONS, EXERCISES):
        assert {path.stem for path in folder.glob("*.ipynb")} == set(CHAPTERS)


@chapters
def test_exercises_are_in_step_with_solutions(chapter: str, tmp_path: Path):
    solution = tmp_path / f"{chapter}.ipynb"
    solution.write_bytes((SOLUTIONS / solution.name).read_bytes())
    made = release(solution, tmp_path / "exercises")
    assert made.read_bytes() == (EXERCISES / made.name).read_bytes(), "run `make exercises`"
    assert solution.read_bytes() == (SOLUTIONS / made.name).read_bytes(), "run `make exercises`"


@chapters
def test_no_line_of_a_solution_survives_in_the_exercises(chapter: str):
    for cell in cells(EXERCISES, chapter):
        assert not leaks(cell.source), f"cell {cell.id} gives a solution away"
        assert not cell.get("outputs")
        assert not leaks(str(dict(cell.metadata)))


def test_a_leak_would_be_seen():
    lines = solution_lines()
    assert len(lines) > 3 * len(CHAPTERS)
    assert leaks(f"Hint: {sorted(lines)[0]}") != []


@chapters
def test_a_chapter_says_which_it_is_and_works_in_colab(chapter: str):
    document = nbformat.read(EXERCISES / f"{chapter}.ipynb", as_version=4)
    assert document.metadata.labkit.chapter == chapter
    assert document.cells[0].id == CELL_ID
    assert document.cells[0].source == bootstrap_source(repository())


@chapters
def test_a_chapter_has_its_exercises_in_order(chapter: str):
    named = [exercise_of(cell) for cell in cells(EXERCISES, chapter)]
    assert [name for name in named if name is not None] == list(CHAPTERS[chapter])


@exercises
def test_stub_reference_and_judge_have_one_signature(chapter: str, name: str):
    stub, reference = (definition(folder, chapter, name) for folder in (EXERCISES, SOLUTIONS))
    exercise = load(name)
    assert stub == reference
    assert (stub.name, stub.parameters) == (exercise.function, exercise.parameters)
    assert stub.docstring, "the stub says what to write"
    assert (exercise.name, exercise.chapter) == (name, chapter)


@exercises
def test_each_exercise_has_its_statement_and_its_check(chapter: str, name: str):
    by_id = {cell.id: cell for cell in cells(EXERCISES, chapter)}
    base = name.replace("_", "-")
    order = [by_id[f"{base}-statement"], by_id[base], by_id[f"{base}-check"]]
    assert [cell.cell_type for cell in order] == ["markdown", "code", "code"]
    positions = [list(by_id).index(cell.id) for cell in order]
    assert positions == sorted(positions)
    exercise = load(name)
    last = order[-1].source.strip().splitlines()[-1]
    assert last == f'check("{name}", {exercise.function})'


@exercises
def test_nbgrader_finds_a_solution_cell_and_a_graded_cell_with_the_points(chapter: str, name: str):
    base = name.replace("_", "-")
    by_id = {cell.id: cell for cell in cells(EXERCISES, chapter)}
    written, graded = by_id[base].metadata.nbgrader, by_id[f"{base}-check"].metadata.nbgrader
    assert (written.solution, written.grade, written.locked) == (True, False, False)
    assert (graded.solution, graded.grade, graded.locked) == (False, True, True)
    assert graded.points == load(name).points
    assert (written.schema_version, graded.schema_version) == (3, 3)
    assert {written.grade_id, graded.grade_id} == {base, f"{base}-check"}


@exercises
def test_cases_are_made_afresh_the_same_and_hidden_ones_differ(chapter: str, name: str):
    exercise: Exercise = load(name)
    visible, hidden = exercise.visible(0), exercise.hidden(1)
    assert 2 <= len(visible) <= 4
    assert len(hidden) >= 3
    for case in (*visible, *hidden):
        assert case.weight > 0
        for mistake in case.mistakes:
            assert mistake.message.endswith("."), f"{mistake.key} is told in a sentence"
    assert [str(case.arguments(0)) for case in exercise.visible(0)] == [
        str(case.arguments(0)) for case in visible
    ]
    shown = {str([case.arguments(rank) for rank in range(max(1, case.ranks))]) for case in visible}
    kept = {str([case.arguments(rank) for rank in range(max(1, case.ranks))]) for case in hidden}
    assert not shown & kept
