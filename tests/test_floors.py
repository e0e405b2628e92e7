"""The house has floors: a module imports only from its own floor or below, and floor 0 runs
where torch is absent."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FLOORS = {
    "labkit": 0,
    "labkit.plan": 0,
    "labkit.balance": 0,
    "labkit.schedule": 0,
    "labkit.simulate": 0,
    "labkit.ranks": 1,
    "labkit.layers": 2,
    "labkit.models": 2,
    "labkit.engine": 3,
    "labkit.experiments": 4,
    "labkit.doctor": 4,
    "labkit.plan_cli": 4,
    "labkit.cli": 4,
    "labkit.__main__": 4,
    "course": 5,
}
STANDARD_LIBRARY_ONLY = ("labkit.plan",)
NUMPY_ONLY = ("labkit.balance", "labkit.schedule", "labkit.simulate")
NOTEBOOK_THINGS = {
    "IPython", "anywidget", "ipykernel", "ipywidgets", "jupyter_client", "jupyterlab",
    "matplotlib", "nbclient", "nbformat", "plotly",
}  # fmt: skip


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Every module of the two packages under `root`, by dotted name."""
    for package in ("labkit", "course"):
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def imports(name: str, file: Path) -> set[str]:
    """The dotted names a module imports anywhere in it, relative ones resolved."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            found |= {f"{base}.{alias.name}" for alias in node.names} | {base}
    return found


def floor(name: str) -> int | None:
    """The floor of the longest prefix of `name` in the table; None for other people's code."""
    parts = name.split(".")
    if parts[0] not in ("labkit", "course"):
        return None
    known = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return FLOORS[next(prefix for prefix in known if prefix in FLOORS)]


def belongs_to(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def broken_rules(root: Path) -> list[str]:
    """Every import under `root` that breaks a rule, as a sentence."""
    broken = []
    for name, file in modules(root):
        if file.parent == root / "labkit" and name != "labkit" and name not in FLOORS:
            broken.append(f"{name} has no floor: give it one in FLOORS")
            continue
        if file.parent != root / "labkit" and name.startswith("labkit."):
            package = ".".join(name.split(".")[:2])
            if package not in FLOORS:
                broken.append(f"{package} has no floor: give it one in FLOORS")
                continue
        own_floor = floor(name)
        assert own_floor is not None
        for imported in sorted(imports(name, file)):
            top, their_floor = imported.split(".")[0], floor(imported)
            if their_floor is not None and their_floor > own_floor:
                broken.append(f"{name} (floor {own_floor}) imports {imported} ({their_floor})")
            if own_floor < 5 and top in NOTEBOOK_THINGS:
                broken.append(f"{name} imports {imported}, which belongs to notebooks")
            foreign = top not in sys.stdlib_module_names and their_floor is None
            if foreign and belongs_to(name, STANDARD_LIBRARY_ONLY):
                broken.append(f"{name} imports {imported}; it may use the standard library only")
            if foreign and belongs_to(name, NUMPY_ONLY) and top != "numpy":
                broken.append(f"{name} imports {imported}; it may use numpy only")
    return broken


def test_no_import_climbs_a_floor():
    assert broken_rules(ROOT) == []


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("labkit/plan/shard.py", "import numpy\n", "standard library only"),
        ("labkit/plan/shard.py", "from labkit.ranks import comm\n", "(floor 0) imports"),
        ("labkit/plan/shard.py", "from ..ranks.comm import Comm\n", "labkit.ranks.comm"),
        ("labkit/balance/metrics.py", "import torch\n", "numpy only"),
        ("labkit/ranks/pool.py", "def f():\n    import labkit.layers.linear\n", "(floor 1)"),
        ("labkit/models/llama.py", "import course\n", "imports course (5)"),
        ("labkit/layers/linear.py", "from plotly import graph_objects\n", "notebooks"),
        ("labkit/novelty/thing.py", "", "labkit.novelty has no floor"),
        ("labkit/novelty.py", "", "labkit.novelty has no floor"),
    ],
)
def test_the_check_sees_a_broken_rule(tmp_path, module, source, complaint):
    file = tmp_path / module
    file.parent.mkdir(parents=True)
    file.write_text(source)
    found = broken_rules(tmp_path)
    assert found
    assert all(complaint in sentence for sentence in found)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("labkit/balance/metrics.py", "import numpy as np\nfrom labkit.plan import shard\n"),
        ("labkit/models/llama.py", "import torch\nfrom labkit.layers import linear\n"),
        ("course/widgets/heads.py", "import plotly\nfrom labkit.engine import runner\n"),
    ],
)
def test_the_check_lets_the_rest_pass(tmp_path, module, source):
    file = tmp_path / module
    file.parent.mkdir(parents=True)
    file.write_text(source)
    assert broken_rules(tmp_path) == []


IMPORT_FLOOR_0 = """
import importlib, importlib.util, pkgutil, sys

BLOCKED, PACKAGES = set(sys.argv[1].split(",")), sys.argv[2].split(",")

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for blocked in BLOCKED:
    try:
        importlib.import_module(blocked)
    except ModuleNotFoundError:
        continue
    sys.exit(f"{blocked} is still there")
for package in PACKAGES:
    if importlib.util.find_spec(package) is None:
        continue
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        print(importlib.import_module(module.name).__name__)
"""


@pytest.mark.parametrize(
    ("blocked", "packages", "expected"),
    [
        ("torch,numpy", STANDARD_LIBRARY_ONLY, "labkit.plan.shard"),
        ("torch", NUMPY_ONLY, ""),
    ],
)
def test_floor_0_imports_with_torch_absent(blocked, packages, expected):
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_FLOOR_0, blocked, ",".join(packages)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
