"""What one run of the grader shares: a temporary folder, copies of the packages, a way to stop."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import site
import tempfile
import threading
from importlib import util
from pathlib import Path

import psutil

_MARK = "LABKIT_GRADING_RUN"
_PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV", "CONDA_PREFIX",
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
)  # fmt: skip
_PACKAGES = ("course", "labkit")
_MODEL = Path("labkit", "models", "tiny")


class Workshop:
    """What one run of the grader shares: a temporary folder, copies of the packages, a mark.

    Student code gets copies of `course` and `labkit`: one that deletes or edits their files changes
    its own copy. Most of their bytes, the weights of the small model, are there once, and linked.
    The mark is in the environment of all that is started, so that a last sweep finds what outlived
    even its warden.
    """

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self.folder = Path(tempfile.mkdtemp(prefix="lk-"))
        self.stop = threading.Event()
        self._numbers = iter(range(1 << 30))
        self._source = self.folder / "packages"
        for name in _PACKAGES:
            spec = util.find_spec(name)
            assert spec is not None
            assert spec.submodule_search_locations is not None
            shutil.copytree(
                spec.submodule_search_locations[0],
                self._source / name,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        model = self._source / _MODEL
        shutil.move(model, self.folder / model.name)
        model.symlink_to(self.folder / model.name)
        self.warden = self._source / "course" / "grading" / "warden.py"

    def new_folder(self) -> Path:
        """An empty folder with a short name (sockets lie in it)."""
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return folder

    def remove_folder(self, folder: Path) -> None:
        """Take a folder from `new_folder` away, as far as that goes; nothing may run in it."""
        shutil.rmtree(folder, ignore_errors=True)

    def environment(self, folder: Path) -> dict[str, str]:
        """What a command in `folder` sees: a home of its own, and copies of the packages."""
        packages, home = folder / "packages", folder / "home"
        shutil.copytree(self._source, packages, symlinks=True)
        home.mkdir()
        environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environ.update(
            dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        )
        environ.update(
            {
                _MARK: self.mark,
                "LABKIT_GRADING": "1",
                "HOME": str(home),
                "TMPDIR": str(folder),
                "IPYTHONDIR": str(home / "ipython"),
                "PYTHONPATH": str(packages),
                "PYTHONUSERBASE": site.getuserbase(),
                "PYTHONUNBUFFERED": "1",
                "OMP_WAIT_POLICY": "passive",
                "MPLBACKEND": "agg",
                "PIP_NO_INDEX": "1",
            }
        )
        return environ

    def sweep(self, folder: Path | None = None) -> None:
        """Kill whatever carries the mark and still lives; only of `folder`, where it is given."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                environ = process.environ()
                is_ours = environ.get(_MARK) == self.mark
                if is_ours and (folder is None or environ.get("TMPDIR") == str(folder)):
                    process.kill()

    def close(self) -> None:
        """Nothing is left: no process, no folder."""
        self.sweep()
        shutil.rmtree(self.folder, ignore_errors=True)
