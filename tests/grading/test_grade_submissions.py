"""Files found, notebooks read, chapters told: nothing that is handed in gets lost."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from handed_in import START, TENSOR, Sheet

from course.grading.notebook_grader import Settings, grade_notebook
from course.grading.submission import (
    Notebook,
    Submission,
    UnreadableError,
    chapter_of,
    find_submissions,
    read_notebook,
)
from course.grading.workshop import Workshop

FUNCTIONS = {START: ["global_mean", "find_skipper"], TENSOR: ["column_parallel", "mlp_block"]}


def submission(name: str) -> Submission:
    return Submission("ada", Path(name), name)


def test_every_notebook_of_every_student_is_found(tmp_path):
    for name in ("ada/a.ipynb", "ada/week 2/b.ipynb", "Ödön/ç.IPYNB", "李/c.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "ada" / ".ipynb_checkpoints").mkdir()
    (tmp_path / "ada" / ".ipynb_checkpoints" / "a.ipynb").write_text("{}")
    (tmp_path / "bob").mkdir()
    (tmp_path / "eve" / "folder.ipynb").mkdir(parents=True)
    (tmp_path / "stray.ipynb").write_text("{}")
    found, students = find_submissions(tmp_path)
    assert [(one.student, one.name) for one in found] == [
        ("", "stray.ipynb"),
        ("ada", "a.ipynb"),
        ("ada", os.path.join("week 2", "b.ipynb")),
        ("eve", "folder.ipynb"),
        ("Ödön", "ç.IPYNB"),
        ("李", "c.ipynb"),
    ]
    assert students == ["ada", "bob", "eve", "Ödön", "李"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"print('hello')", "is not JSON"),
        (b"[1, 2]", "no notebook that can be read"),
        (b'{"nbformat": 4}', "no notebook that can be read"),
        (b'{"nbformat": 99, "nbformat_minor": 0, "cells": [], "metadata": {}}', "can be read"),
        (b"\xff\xfe\x00", "no text in UTF-8"),
        (b"[" * 100_000, "is nested too deeply for a notebook"),
    ],
)
def test_a_file_that_is_no_notebook_says_why(tmp_path, content, told):
    path = tmp_path / "a.ipynb"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=told):
        read_notebook(path)


def test_a_folder_a_pipe_and_a_broken_link_are_no_notebooks(tmp_path):
    (tmp_path / "folder.ipynb").mkdir()
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "nowhere")
    told = {"folder": "is a folder", "pipe": "no regular file", "link": "cannot be read"}
    for name, text in told.items():
        with pytest.raises(UnreadableError, match=text):
            read_notebook(tmp_path / f"{name}.ipynb")


def test_old_and_marked_files_are_read(tmp_path):
    old = nbformat.v3.new_notebook(
        worksheets=[nbformat.v3.new_worksheet(cells=[nbformat.v3.new_code_cell(input="x = 1")])]
    )
    (tmp_path / "old.ipynb").write_text("\ufeff" + nbformat.v3.writes_json(old), "utf-8")
    assert read_notebook(tmp_path / "old.ipynb").cells == ("x = 1",)


@pytest.mark.parametrize(
    ("notebook", "name", "chapter"),
    [
        (Notebook((), TENSOR), "homework.ipynb", TENSOR),
        (Notebook(("def mlp_block(): ...",), START), f"{TENSOR}.ipynb", START),
        (Notebook(("x = 1", "def mlp_block(): ..."), None), "homework.ipynb", TENSOR),
        (Notebook(("global_mean = lambda comm, x: x",), "97_gone"), "homework.ipynb", START),
        (Notebook(("x = 1",), None), f"{TENSOR}.ipynb", TENSOR),
        (Notebook(("x = 1",), None), f"Copy of {TENSOR} (1).ipynb", TENSOR),
        (None, f"{START}.ipynb", START),
        (Notebook(("x = 1",), None), "homework.ipynb", None),
        (None, "homework.ipynb", None),
    ],
)
def test_chapter_comes_from_metadata_then_functions_then_name(notebook, name, chapter):
    assert chapter_of(submission(name), notebook, FUNCTIONS) == chapter


def test_definitions_are_found_however_they_are_spelt():
    cells = (
        "def f(comm):\n    return 1",
        "if True:\n    def f(comm): ...",
        "f = lambda comm: 1",
        "f: object = print",
        "async def f(): ...",
        "def ff(): ...\nf(3)\nf == 2",
        "%%time\ndef f (comm): ...",
    )
    assert Notebook(cells, None).cells_defining("f") == (0, 1, 2, 3, 4, 6)


@pytest.fixture
def workshop():
    started = Workshop()
    yield started
    started.close()


@pytest.mark.parametrize(
    ("content", "name", "num_rows", "told"),
    [
        ("no json", f"{TENSOR}.ipynb", 9, "is not JSON"),
        ("", f"{START}.ipynb", 3, "is empty"),
        ("no json", "homework.ipynb", 1, "is not JSON"),
    ],
)
def test_an_unreadable_file_has_a_row_for_each_exercise(
    tmp_path, workshop, content, name, num_rows, told
):
    (tmp_path / name).write_text(content)
    one = Submission("ada", tmp_path / name, name)
    result = grade_notebook(workshop, one, Settings())
    assert len(result.rows) == num_rows
    assert {row.status for row in result.rows} == {"unreadable"}
    assert all(told in row.reason and name in row.reason for row in result.rows)
    assert sum(row.max_points for row in result.rows) == 10 * num_rows * (num_rows > 1)


def test_a_notebook_of_no_chapter_says_which_there_are(tmp_path, workshop):
    sheet = Sheet(START).forget_metadata()
    sheet.document.cells = sheet.document.cells[:2]
    path = sheet.hand_in(tmp_path, "ada", "homework.ipynb")
    (row,) = grade_notebook(workshop, Submission("ada", path, path.name), Settings()).rows
    assert row.status == "unreadable"
    assert START in row.reason
    assert TENSOR in row.reason


def test_a_file_beside_the_students_folders_says_where_it_belongs(tmp_path, workshop):
    path = Sheet(START).hand_in(tmp_path, ".")
    (row,) = grade_notebook(workshop, Submission("", path, path.name), Settings()).rows
    assert "<student>/<chapter>.ipynb" in row.reason
