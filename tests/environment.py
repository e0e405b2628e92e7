"""Clean virtual environments for tests that install packages; torch is unpacked only once."""

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
import venv
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True)
class Environment:
    """A virtual environment in a folder of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def pip(self, *arguments: str) -> str:
        """Runs this environment's pip; its output on success, AssertionError with it otherwise."""
        return self.run("-m", "pip", "--disable-pip-version-check", *arguments, timeout=600)

    def run(self, *arguments: str, timeout: float = 120, cwd: Path | None = None) -> str:
        """Runs this environment's Python away from the checkout, so that nothing leaks in."""
        done = subprocess.run(
            [self.python, *arguments],
            cwd=cwd or self.folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, f"{arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def versions(self) -> dict[str, str]:
        """Every installed distribution and its version."""
        listed = json.loads(self.pip("list", "--format=json"))
        return {package["name"].lower(): package["version"] for package in listed}

    @property
    def site_packages(self) -> Path:
        return next((self.folder / "lib").glob("python3.*/site-packages"))


@functools.cache
def _with_torch() -> Environment:
    """An environment holding pip, torch and what torch itself requires; nothing else."""
    folder = Path(tempfile.mkdtemp(prefix="labkit-environment-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    environment = Environment(folder)
    environment.pip(
        "install", "--quiet", "--no-compile", f"torch=={version('torch').split('+')[0]}"
    )
    return environment


def fresh_environment(folder: Path) -> Environment:
    """A new environment with torch in `folder`. Files are hard links: pip replaces, never edits."""
    shutil.copytree(_with_torch().folder, folder, symlinks=True, copy_function=_link)
    return Environment(folder)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system
        shutil.copy2(source, target, follow_symlinks=False)


def committed_copy(folder: Path) -> Path:
    """The checkout as it stands, with uncommitted changes, as a git repository pip can clone."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listing.split("\0")):
        if (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    author = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    for command in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "as it stands"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder
