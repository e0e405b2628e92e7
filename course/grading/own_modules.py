"""A notebook's own modules: files handed in beside it, or written by its cells.

They lie in the kernel's work folder, which is last on its path. They travel to the ranks with the
functions that use them: what is loaded by value, and every file for what is imported later.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from labkit.ranks.wire import dumps, loads

MOST_FILES = 50
MOST_BYTES = 1_000_000
"""Of the modules of one notebook together."""


def read_modules(folder: Path) -> tuple[dict[str, bytes], str]:
    """The .py files in `folder`, by name, and a sentence where some are left out."""
    found: dict[str, bytes] = {}
    left_out: list[str] = []
    for path in sorted(folder.glob("*.py")):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            size = path.stat().st_size + sum(map(len, found.values()))
            if len(found) == MOST_FILES or size > MOST_BYTES:
                left_out.append(path.name)
            else:
                found[path.name] = path.read_bytes()
    if not left_out:
        return found, ""
    return found, (
        f"{len(left_out)} .py files beside the notebook were left out, first {left_out[0]}: "
        f"at most {MOST_FILES} of together {MOST_BYTES / 1e6:g} MB are taken"
    )


def pack_with_modules(function: Any, pack: Callable[[Any], bytes], folder: str) -> bytes:
    """`pack(function)`, with the modules whose files are in `folder` (absolute, links resolved).

    The bytes are such as `load_function` takes. Raises what `pack` raises.
    """
    for module in _loaded_from(folder):
        cloudpickle.register_pickle_by_value(module)
    files = dict(_files_in(folder))
    for name, source in files.items():  # so that a traceback shows the line
        path, lines = os.path.join(folder, name), source.decode("utf-8", "replace").splitlines(True)
        linecache.cache[path] = (len(source), None, lines, path)
    packed = pack(function)
    if not files:
        return packed
    sources, body = loads(packed)
    return bytes(dumps((sources, bytes(dumps(_WithModules(files, body))))))


class _WithModules:
    """Loads as the function in `body`, where the modules in `files` can be imported."""

    def __init__(self, files: dict[str, bytes], body: bytes) -> None:
        self.parts = files, body

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_with_modules, self.parts


def _load_with_modules(files: dict[str, bytes], body: bytes) -> Any:
    folder = Path(tempfile.mkdtemp(prefix="modules-"))
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(source)
    sys.path.append(str(folder))
    return loads(body)


def _loaded_from(folder: str) -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and name == vars(module).get("__name__"):
            file = vars(module).get("__file__")
            if isinstance(file, str) and os.path.realpath(file).startswith(folder + os.sep):
                yield module


def _files_in(folder: str) -> Iterator[tuple[str, bytes]]:
    """The .py files below `folder`, as many as may be: their path from there, and content."""
    number = size = 0
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in sorted(folders) if not name.startswith((".", "__"))]
        for name in sorted(names):
            path = Path(here, name)
            if not name.endswith(".py") or not path.is_file():
                continue
            number, size = number + 1, size + path.stat().st_size
            if number > MOST_FILES or size > MOST_BYTES:
                return
            yield str(path.relative_to(folder)), path.read_bytes()
