"""nbgrader itself, in an environment of its own, takes `solutions/` as its source."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import nbformat
import pytest
from solved_notebooks import EXERCISES, SOLUTIONS, cells

from course.exercises import CHAPTERS, load

CHAPTER = "00_start_here"

SCORES = """
import json, sys
from nbgrader.api import Gradebook
with Gradebook(f"sqlite:///{sys.argv[1]}/gradebook.db") as book:
    found = book.assignment_submissions(sys.argv[2])
    print(json.dumps({s.student.id: [s.score, s.max_score] for s in found}))
"""


class NbGrader:
    """An environment with nbgrader that sees this one's packages, and a course folder."""

    def __init__(self, folder: Path) -> None:
        self.course = folder / "course"
        self.course.mkdir()
        self._bin = folder / "environment" / "bin"
        venv.create(folder / "environment", with_pip=True)
        (own,) = (folder / "environment" / "lib").glob("python3.*/site-packages")
        ours = sysconfig.get_path("purelib")
        (own / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        self.run("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "nbgrader>=0.9")

    def run(self, *arguments: str) -> str:
        """Runs this environment's Python in the course folder; what it prints."""
        done = subprocess.run(
            [self._bin / "python", *arguments],
            cwd=self.course,
            env={**os.environ, "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}"},
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
    made = NbGrader(tmp_path_factory.mktemp("nbgrader"))
    for chapter in CHAPTERS:
        made.put(SOLUTIONS / f"{chapter}.ipynb", "source")
        made.run("-m", "nbgrader", "generate_assignment", "--create", chapter)
    return made


@pytest.mark.slow_env
@pytest.mark.timeout(900)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_nbgrader_makes_the_same_student_cells(nbgrader: NbGrader, chapter: str):
    released = nbgrader.course / "release" / chapter / f"{chapter}.ipynb"
    theirs = [(c.id, c.cell_type, c.source) for c in nbformat.read(released, as_version=4).cells]
    assert theirs == [(c.id, c.cell_type, c.source) for c in cells(EXERCISES, chapter)]


@pytest.mark.slow_env
@pytest.mark.timeout(900)
def test_nbgrader_gives_a_reference_all_points_and_a_stub_none(nbgrader: NbGrader):
    nbgrader.put(SOLUTIONS / f"{CHAPTER}.ipynb", "submitted", "solved")
    nbgrader.put(EXERCISES / f"{CHAPTER}.ipynb", "submitted", "untouched")
    nbgrader.run("-m", "nbgrader", "autograde", CHAPTER)
    scores = json.loads(nbgrader.run("-c", SCORES, str(nbgrader.course), CHAPTER))
    most = sum(load(name).points for name in CHAPTERS[CHAPTER])
    assert scores == {"solved": [most, most], "untouched": [0, most]}
