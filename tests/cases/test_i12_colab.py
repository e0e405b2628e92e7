"""I12: installing labkit where Colab's packages are already loaded replaces none of them.

`colab_versions.txt` lists the versions and where they were published.
"""

import json
import textwrap
from pathlib import Path

import pytest

from course.bootstrap import bootstrap_source
from tests.environment import REPOSITORY, committed_copy, fresh_environment

pytestmark = [pytest.mark.slow_env, pytest.mark.timeout(900)]

COLAB_MODULE = """
widget_managers = []
def enable_custom_widget_manager():
    widget_managers.append("enabled")
"""

SESSION = textwrap.dedent("""
    import json, os, sys
    import google.colab, numpy, pandas, numba, torch  # loaded before the first cell, as in Colab
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    cells = json.load(open(sys.argv[1]))
    for source in cells:
        shell.run_cell(source).raise_error()

    import google.colab.output, labkit
    print(json.dumps({
        "process": os.getpid(),
        "numpy": numpy.__version__,
        "labkit": labkit.__file__,
        "widget_managers": google.colab.output.widget_managers,
    }))
""")


def notebook_cells(name: str) -> list[str]:
    document = json.loads((REPOSITORY / "notebooks" / name).read_text())
    return ["".join(c["source"]) for c in document["cells"] if c["cell_type"] == "code"]


def test_installing_in_colab_changes_no_version_and_imports_in_the_same_cell(tmp_path: Path):
    colab = fresh_environment(tmp_path / "colab")
    colab.pip(
        "install",
        "--quiet",
        "--no-compile",
        "-r",
        str(Path(__file__).with_name("colab_versions.txt")),
    )
    package = colab.site_packages / "google" / "colab"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "output.py").write_text(COLAB_MODULE)
    before = colab.versions()

    address = committed_copy(tmp_path / "published").as_uri()
    install_and_import = bootstrap_source(address) + "\nimport course, labkit, labkit.ranks"
    cells = [install_and_import, *notebook_cells("00_start_here.ipynb")]
    (tmp_path / "cells.json").write_text(json.dumps(cells))
    (tmp_path / "session.py").write_text(SESSION)
    printed = colab.run("session.py", "cells.json", cwd=tmp_path, timeout=600)

    session = json.loads(printed.strip().splitlines()[-1])
    after = colab.versions()
    assert {name: after.get(name) for name in before} == before
    assert "inference-parallelism-labkit" in after
    assert session["numpy"] == "2.0.2"
    assert session["widget_managers"][0] == "enabled"
    assert Path(session["labkit"]).is_relative_to(colab.site_packages)
    assert "restart" not in printed.lower()
