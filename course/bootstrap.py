"""The first cell of every notebook: makes it work in Colab, changes nothing anywhere else.

`python -m course.bootstrap --write notebooks/*.ipynb` puts the same cell into each notebook. The
address it installs from is the one that `pyproject.toml` names under `[tool.labkit]`.
"""

import argparse
import tomllib
from pathlib import Path

import nbformat

DISTRIBUTION = "inference-parallelism-labkit"
CELL_ID = "bootstrap"
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"

_CELL = """\
# @title Set-up for Colab (changes nothing anywhere else)
import importlib.util
import subprocess
import sys

SOURCE = "{source}"
if "google.colab" in sys.modules:
    if importlib.util.find_spec("labkit") is None:
        assert SOURCE, "labkit has no public repository yet, so Colab cannot install it."
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", SOURCE], check=True)
        importlib.invalidate_caches()
    importlib.import_module("google.colab.output").enable_custom_widget_manager()"""


def repository(pyproject: Path = PYPROJECT) -> str:
    """The public repository's address as `pyproject.toml` gives it, or "" while there is none."""
    return str(tomllib.loads(pyproject.read_text())["tool"]["labkit"]["repository"])


def bootstrap_source(address: str) -> str:
    """The cell's text. `address` is what git clones; "" gives a cell that says it is not set."""
    return _CELL.format(source=f"{DISTRIBUTION} @ git+{address}" if address else "")


def write_bootstrap(notebook: Path, address: str) -> bool:
    """Makes the first cell of a notebook file the bootstrap cell; True if the file changed."""
    document = nbformat.read(notebook, as_version=4)
    source = bootstrap_source(address)
    cells = document.cells
    if cells and cells[0].get("id") == CELL_ID:
        if cells[0].source == source:
            return False
        cells[0].source = source
    else:
        cell = nbformat.v4.new_code_cell(source, id=CELL_ID)
        cell.metadata = nbformat.from_dict({"cellView": "form", "jupyter": {"source_hidden": True}})
        cells.insert(0, cell)
    nbformat.write(document, notebook)
    return True


def main(argv: list[str] | None = None) -> None:
    """Command line: prints the cell, or writes it into the notebooks named after --write."""
    parser = argparse.ArgumentParser(prog="python -m course.bootstrap", description=__doc__)
    parser.add_argument("--write", nargs="+", type=Path, metavar="NOTEBOOK", default=[])
    notebooks = parser.parse_args(argv).write
    if not notebooks:
        print(bootstrap_source(repository()))
    for notebook in notebooks:
        changed = write_bootstrap(notebook, repository())
        print(f"{notebook}: {'written' if changed else 'already in step'}")


if __name__ == "__main__":
    main()
