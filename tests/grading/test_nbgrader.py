"""nbgrader itself, in a folder beside this environment's packages, takes `solutions/` as it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from solved_notebooks import EXERCISES, SOLUTIONS, cells

from course.exercises import CHAPTERS, load

CHAPTER = "00_start_here"
PACKAGES = ("nbgrader>=0.9", "alembic", "Mako", "RapidFuzz", "SQLAlchemy")
"""nbgrader and what it needs that is not here, without the classic notebook server."""

GENERATE = """
import sys
from nbgrader.apps import NbGraderAPI
for chapter in sys.argv[1:]:
    made = NbGraderAPI().generate_assignment(chapter, create=True)
    assert made["success"], made["log"]
"""
SCORES = """
import json, sys
from nbgrader.api import Gradebook
with Gradebook(f"sqlite:///{sys.argv[1]}/gradebook.db") as book:
    found = book.assignment_submissions(sys.argv[2])
    print(json.dumps({s.student.id: [s.score, s.max_score] for s in found}))
"""


class NbGrader:
    """nbgrader and a course folder: `source` has every chapter, `release` what it made of each."""

    def __init__(self, folder: Path) -> None:
        self.course = folder / "course"
        self.course.mkdir()
        self._packages = folder / "packages"
        target = ("--target", str(self._packages), "--no-deps", "--no-compile", "--quiet")
        self.run("-m", "pip", "--disable-pip-version-check", "install", *target, *PACKAGES)
        for chapter in CHAPTERS:
            self.put(SOLUTIONS / f"{chapter}.ipynb", "source")
        self.run("-c", GENERATE, *CHAPTERS)

    def run(self, *arguments: str) -> str:
        """Runs Python with nbgrader in the course folder; what it prints."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.course,
            env={
                **os.environ,
                "PYTHONPATH": str(self._packages),
                "PATH": f"{self._packages / 'bin'}{os.pathsep}{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def put(self, notebook: Path, *place: str) -> None:
        """Copies a chapter's notebook to `place`/CHAPTER/ below the course folder."""
        folder = self.course.joinpath(*place, notebook.stem)
        folder.mkdir(parents=True)
        shutil.copy(notebook, folder)


@pytest.fixture(scope="module")
def nbgrader(tmp_path_factory: pytest.TempPathFactory) -> NbGrader:
    return NbGrader(tmp_path_factory.mktemp("nbgrader"))


@pytest.mark.slow_env
@pytest.mark.timeout(600)
def test_nbgrader_makes_the_same_student_cells(nbgrader: NbGrader):
    for chapter in CHAPTERS:
        made = nbgrader.course / "release" / chapter / f"{chapter}.ipynb"
        theirs = [(c.id, c.cell_type, c.source) for c in nbformat.read(made, as_version=4).cells]
        assert theirs == [(c.id, c.cell_type, c.source) for c in cells(EXERCISES, chapter)]


@pytest.mark.soak
@pytest.mark.slow_env
@pytest.mark.timeout(1800)
def test_nbgrader_gives_a_reference_all_points_and_a_stub_none(nbgrader: NbGrader):
    nbgrader.put(SOLUTIONS / f"{CHAPTER}.ipynb", "submitted", "solved")
    nbgrader.put(EXERCISES / f"{CHAPTER}.ipynb", "submitted", "untouched")
    nbgrader.run("-m", "nbgrader", "autograde", CHAPTER)
    scores = json.loads(nbgrader.run("-c", SCORES, str(nbgrader.course), CHAPTER))
    most = sum(load(name).points for name in CHAPTERS[CHAPTER])
    assert scores == {"solved": [most, most], "untouched": [0, most]}
