"""The oldest versions that pyproject.toml admits really work (torch aside: its build is local)."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.environment import REPOSITORY, committed_copy, fresh_environment

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

SMOKE = """
import torch
from labkit.models.checkpoint import open_checkpoint
from labkit.models.generate import complete
from labkit.models.library import resolve
from labkit.models.llama import load_model
from labkit.ranks import RankPool

def greedy(comm, path, ids):
    return complete(load_model(path, comm), [ids], 8)[0]

if __name__ == "__main__":
    path = resolve("tiny")
    tokenizer = open_checkpoint(path).load_tokenizer()
    ids = tokenizer.encode("The ranks wait")
    with RankPool(2) as pool:
        assert pool.run(lambda comm: comm.all_reduce(torch.ones(3)).tolist()) == [[2.0] * 3] * 2
        first, second = pool.run(greedy, str(path), ids)
    assert first == second and tokenizer.decode(first)
    print(len(first))
"""

LESSON = """
import sys
from pathlib import Path
import nbformat
from course.notebook import run

executed = run(nbformat.read(sys.argv[1], as_version=4), Path.cwd())
print([output for cell in executed.cells for output in cell.get("outputs", [])])
"""


def lowest(requirements: list[str]) -> list[str]:
    """Each `name>=version` pinned to that version; torch is left to the environment."""
    pinned = [re.fullmatch(r"([\w-]+)>=([\d.]+)", r) for r in requirements]
    assert all(pinned), f"a requirement without a plain lower bound in {requirements}"
    return [f"{m[1]}=={m[2]}" for m in pinned if m and m[1] != "torch"]


@pytest.mark.slow_env
@pytest.mark.timeout(900)
def test_the_declared_lower_bounds_run_ranks_the_tiny_model_and_notebook_00(tmp_path: Path):
    checkout = committed_copy(tmp_path / "checkout")
    oldest = fresh_environment(tmp_path / "oldest")
    pins = lowest(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["course"])
    quiet = ("--quiet", "--no-compile")
    oldest.pip("install", *quiet, *pins, str(checkout), "pytest", "hypothesis")
    installed = oldest.versions()
    for pin in pins:
        name, bound = pin.split("==")
        assert installed[name.lower()].startswith(bound), f"{pin}: {installed[name.lower()]}"

    (tmp_path / "smoke.py").write_text(SMOKE)
    assert oldest.run("smoke.py", cwd=tmp_path).strip() == "8"
    reading_gguf = oldest.run(
        "-m", "pytest", "--confcutdir=tests/models", "tests/models/test_gguf.py", cwd=checkout
    )
    assert " passed" in reading_gguf

    lesson = checkout / "notebooks" / "00_start_here.ipynb"
    (tmp_path / "lesson.py").write_text(LESSON)
    assert "[6, 6, 6]" in oldest.run("lesson.py", str(lesson), cwd=tmp_path, timeout=300)
