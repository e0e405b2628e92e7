"""I13: notebook CI that lies. Ten runs, four ranks printing at once, and nothing slips through."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

REPOSITORY = Path(__file__).parents[2]
CONCURRENT = REPOSITORY / "tests" / "notebooks" / "concurrent_output.ipynb"
TEST_COMMAND = ["--nbval-lax", "--nbval-cell-timeout=120"]


def run_as_ci_does(folder: Path, *more: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The flags of `make test` on a folder of notebooks, with the repository's own hook."""
    shutil.copy(REPOSITORY / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *TEST_COMMAND, *more, "."],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=380,
    )


def write_notebook(
    path: Path, *sources: str, checked_output: str | None = None, tags: Sequence[str] = ()
) -> None:
    cells = [nbformat.v4.new_code_cell(source, execution_count=1) for source in sources]
    if checked_output is not None:
        cells[0].metadata["tags"] = ["nbval-check-output", *tags]
        cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text=checked_output)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


BOGUS = "{magic}\nraise RuntimeError('nbval alone would miss this')"
IN_PIECES = "import sys, time\nprint(1); sys.stdout.flush(); time.sleep(0.3); print(2)"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What CI's command says of each cell of a few small notebooks: "passed" or the failure."""
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / "line_magic.ipynb", "x = 1", BOGUS.format(magic="%bogus"), "x += 1")
    write_notebook(folder / "cell_magic.ipynb", "x = 1", BOGUS.format(magic="%%bogus"), "x += 1")
    write_notebook(folder / "plain_raise.ipynb", "raise RuntimeError('seen')")
    write_notebook(folder / "dead_kernel.ipynb", "import os\nos._exit(3)", "x = 1")
    write_notebook(folder / "changed.ipynb", "print('6')", checked_output="5\n")
    write_notebook(folder / "in_pieces.ipynb", IN_PIECES, checked_output="1\n2\n")
    done = run_as_ci_does(folder, "--junitxml=verdicts.xml")
    assert done.returncode == 1, done.stdout
    found: dict[str, list[str]] = {}
    for case in ElementTree.parse(folder / "verdicts.xml").iter("testcase"):
        failure = case.find("failure")
        text = "passed" if failure is None else str(failure.text)
        found.setdefault(case.attrib["classname"].removesuffix(".ipynb"), []).append(text)
    return found


def test_make_test_uses_these_flags_on_all_notebooks():
    makefile = (REPOSITORY / "Makefile").read_text()
    recipe = re.search(r"^test:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe
    for part in (*TEST_COMMAND, " tests notebooks"):
        assert part in recipe.group(1)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("runs", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_runs_of_four_ranks_printing_at_once_have_no_flaky_failure(tmp_path: Path, runs: int):
    for run in range(runs):
        shutil.copy(CONCURRENT, tmp_path / f"run_{run}.ipynb")
    done = run_as_ci_does(tmp_path)
    num_cells = sum(c.cell_type == "code" for c in nbformat.read(CONCURRENT, as_version=4).cells)
    assert f" {runs * num_cells} passed in " in done.stdout, done.stdout
    assert done.returncode == 0


def test_raise_after_a_bogus_magic_makes_the_command_fail(tmp_path: Path):
    write_notebook(tmp_path / "cells.ipynb", "x = 1", BOGUS.format(magic="%bogus"))
    done = run_as_ci_does(tmp_path)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


@pytest.mark.parametrize("kind", ["line_magic", "cell_magic"])
def test_only_the_cell_with_the_bogus_magic_fails(verdicts: dict[str, list[str]], kind: str):
    before, bogus, after = verdicts[kind]
    assert (before, after) == ("passed", "passed")
    assert "bogus" in bogus
    assert "The kernel reports" in bogus


def test_plain_raise_fails(verdicts: dict[str, list[str]]):
    assert "seen" in verdicts["plain_raise"][0]


def test_dead_kernel_fails_at_once(verdicts: dict[str, list[str]]):
    killed, after = verdicts["dead_kernel"]
    assert "The kernel died" in killed
    assert after != "passed"


def test_changed_output_of_a_checked_cell_fails(verdicts: dict[str, list[str]]):
    assert "Cell outputs differ" in verdicts["changed"][0]


def test_same_output_in_two_pieces_is_the_same(verdicts: dict[str, list[str]]):
    assert verdicts["in_pieces"] == ["passed"]


@pytest.mark.parametrize(("required", "exit_code"), [("0", 0), ("1", 1)])
def test_outputs_that_need_the_model_are_compared_only_where_it_is_or_must_be(
    tmp_path: Path, required: str, exit_code: int
):
    write_notebook(
        tmp_path / "cells.ipynb", "print(6)", checked_output="5\n", tags=["needs-smollm2"]
    )
    (tmp_path / "no_models_here").mkdir()
    home = str(tmp_path / "no_models_here")
    done = run_as_ci_does(tmp_path, LABKIT_HOME=home, LABKIT_REQUIRE_MODEL=required)
    assert done.returncode == exit_code, done.stdout
