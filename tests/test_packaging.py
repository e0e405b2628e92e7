"""Packaging: what is declared, what is locked, what `make` does, what may not be named."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
TEXT = {".py", ".md", ".toml", ".yml", ".lock", ".ipynb", ".svg", "", ".json", ".txt"}


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    return [REPOSITORY / name for name in filter(None, listed.split("\0"))]


def tracked_texts() -> dict[str, str]:
    return {
        str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8")
        for path in tracked_files()
        if path.suffix in TEXT and path.is_file()
    }


def locked() -> list[Requirement]:
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def locked_for(python: str) -> dict[str, str]:
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    return {
        requirement.name.lower().replace("_", "-"): str(requirement.specifier)
        for requirement in locked()
        if requirement.marker is None or requirement.marker.evaluate(environment)
    }


def test_base_install_needs_no_notebook_packages():
    names = {Requirement(r).name for r in PROJECT["dependencies"]}
    assert not names & {"jupyterlab", "ipywidgets", "anywidget", "matplotlib", "transformers"}


def test_no_upper_bounds_so_that_no_neighbour_is_downgraded():
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    assert [r for group in groups for r in group if re.search(r"[<~]|==", r)] == []


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_lock_pins_every_declared_requirement_once_and_within_bounds(python: str):
    pins = locked_for(python)
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *extras["course"], *extras["dev"]]:
        requirement = Requirement(text)
        pin = pins[requirement.name]
        assert pin.startswith("==")
        assert requirement.specifier.contains(pin.removeprefix("==")), f"{text} but locked {pin}"


def test_lock_leaves_accelerator_packages_to_torch_and_names_no_host():
    text = (REPOSITORY / "requirements.lock").read_text()
    assert "://" not in text
    pins = [r.name for r in locked()]
    assert not [name for name in pins if name.startswith(("nvidia-", "cuda-", "triton"))]
    assert "torch" in pins


def test_no_text_installs_the_unrelated_labkit_from_pypi():
    offender = re.compile(r"pip3? install (?:-\S+ )*['\"]?labkit\b")
    found = [n for n, text in tracked_texts().items() if offender.search(text)]
    assert found == []


def test_distribution_is_not_called_labkit():
    assert PROJECT["name"] == "inference-parallelism-labkit"


def test_repository_address_is_named_once():
    address = PYPROJECT["tool"]["labkit"]["repository"]
    texts = tracked_texts()
    if not address:
        badges = [n for n, text in texts.items() if "colab-badge" in text and n != __name__]
        assert [n for n in badges if n != "tests/test_packaging.py"] == []
        return
    generated = {name for name in texts if name.endswith(".ipynb")}
    assert {n for n, text in texts.items() if address in text} - generated <= {"pyproject.toml"}


MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|tmp|home/\w+|farm)/\w")
REGISTRY_HOST = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|deb\.debian|download\.pytorch")


def test_nothing_names_a_path_of_this_machine_or_a_registry_host():
    found = {
        f"{name}: {match.group()}"
        for name, text in tracked_texts().items()
        for match in (*MACHINE_PATH.finditer(text), *REGISTRY_HOST.finditer(text))
        if name != "tests/test_packaging.py"
    }
    assert found == set()


def test_license_is_apache():
    assert PROJECT["license"] == "Apache-2.0"
    text = (REPOSITORY / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_version_agrees_with_the_installed_metadata():
    from importlib.metadata import version

    assert version(PROJECT["name"]) == PROJECT["version"]


def make(*arguments: str, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)


def test_make_help_lists_every_target():
    makefile = (REPOSITORY / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    shown = make("help").stdout
    for target in phony.group(1).split():
        assert re.search(rf"^  {target}\s+\S", shown, re.MULTILINE), f"{target} is not explained"


def test_make_says_which_pythons_it_looked_for(tmp_path: Path):
    (tmp_path / "Makefile").write_text((REPOSITORY / "Makefile").read_text())
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    done = make("setup", "CANDIDATES=no-such-python python2.7-neither", cwd=tmp_path)
    assert done.returncode != 0
    assert "no-such-python python2.7-neither" in done.stderr
    assert "PYTHON=" in done.stderr


def test_make_passes_over_a_python_that_is_too_old(tmp_path: Path):
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    (folder / "Makefile").write_text((REPOSITORY / "Makefile").read_text())
    old = folder / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = make(".venv/.labkit/python", f"CANDIDATES=./old-python {sys.executable}", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"({sys.executable})" in done.stdout
    assert (folder / ".venv" / "bin" / "python").exists()
    again = make(".venv/.labkit/python", "CANDIDATES=./old-python", cwd=folder)
    assert "up to date" in again.stdout


def test_an_interrupted_environment_is_made_again(tmp_path: Path):
    (tmp_path / "Makefile").write_text((REPOSITORY / "Makefile").read_text())
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / ".labkit").mkdir()
    (tmp_path / ".venv" / ".labkit" / "python").touch()
    (tmp_path / ".venv" / "bin" / "python").symlink_to(tmp_path / "gone")
    done = make(".venv/.labkit/python", f"CANDIDATES={sys.executable}", cwd=tmp_path)
    assert "Making .venv" in done.stdout
    assert subprocess.run([tmp_path / ".venv" / "bin" / "python", "-c", ""]).returncode == 0


def test_an_environment_that_works_is_kept(tmp_path: Path):
    (tmp_path / "Makefile").write_text((REPOSITORY / "Makefile").read_text())
    subprocess.run([sys.executable, "-m", "venv", tmp_path / ".venv"], check=True)
    (tmp_path / ".venv" / "mine").touch()
    done = make(".venv/.labkit/python", "CANDIDATES=no-such-python", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".venv" / "mine").exists()


def test_ci_requires_what_tests_would_otherwise_skip():
    script = (REPOSITORY / ".ci" / "run").read_text()
    assert "LABKIT_REQUIRE_MODEL=1" in script
    assert "LABKIT_REQUIRE_BROWSER=1" in script
    assert "apt-get update" in script
    assert re.search(r"^exec make test", script, re.MULTILINE)
    assert (REPOSITORY / ".ci" / "run").stat().st_mode & 0o111


def test_conda_environment_installs_the_same_lock():
    text = (REPOSITORY / "environment.yml").read_text()
    assert "-r requirements.lock" in text
    assert "-e .[course]" in text
