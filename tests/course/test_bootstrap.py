"""The Colab cell: one text, in step everywhere, and nothing happens outside Colab."""

import subprocess
import sys
import types

import nbformat
import pytest

from course.bootstrap import CELL_ID, bootstrap_source, repository, write_bootstrap


def run_cell(source: str) -> None:
    exec(compile(source, "<bootstrap>", "exec"), {})


@pytest.fixture
def colab(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Colab's modules, as far as the cell looks at them; the calls they got."""
    calls: list[str] = []
    output = types.ModuleType("google.colab.output")
    output.enable_custom_widget_manager = lambda: calls.append("widgets")  # type: ignore[attr-defined]
    package = types.ModuleType("google.colab")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "google", types.ModuleType("google"))
    monkeypatch.setitem(sys.modules, "google.colab", package)
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    monkeypatch.setattr(subprocess, "run", lambda command, check: calls.append(" ".join(command)))
    return calls


@pytest.fixture
def without_labkit(monkeypatch: pytest.MonkeyPatch) -> None:
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda n: None if n == "labkit" else find(n))


def test_outside_colab_the_cell_does_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("installed something"))
    before = set(sys.modules)
    run_cell(bootstrap_source("https://example.org/labkit"))
    run_cell(bootstrap_source(""))
    assert set(sys.modules) == before


def test_in_colab_an_installed_labkit_is_left_alone(colab: list[str]):
    run_cell(bootstrap_source("https://example.org/labkit"))
    assert colab == ["widgets"]


def test_in_colab_a_missing_labkit_is_installed_from_the_repository(
    colab: list[str], without_labkit: None
):
    run_cell(bootstrap_source("https://example.org/labkit"))
    install, widgets = colab
    assert install.endswith("inference-parallelism-labkit @ git+https://example.org/labkit")
    assert "-m pip install" in install
    assert widgets == "widgets"


def test_in_colab_without_a_repository_the_cell_says_so(colab: list[str], without_labkit: None):
    with pytest.raises(AssertionError, match="no public repository yet"):
        run_cell(bootstrap_source(""))
    assert colab == []


def test_writing_twice_changes_nothing_and_keeps_the_other_cells(tmp_path):
    path = tmp_path / "lesson.ipynb"
    lesson = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1", id="sum")])
    nbformat.write(lesson, path)
    assert write_bootstrap(path, "")
    assert not write_bootstrap(path, "")
    assert write_bootstrap(path, "https://example.org/labkit")
    cells = nbformat.read(path, as_version=4).cells
    assert [cell.id for cell in cells] == [CELL_ID, "sum"]
    assert cells[0].source == bootstrap_source("https://example.org/labkit")


def test_repository_is_read_from_pyproject(tmp_path):
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text('[tool.labkit]\nrepository = "https://example.org/x"\n')
    assert repository(pyproject) == "https://example.org/x"
