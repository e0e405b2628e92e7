"""Where a rank is in its Python code, and file names that a reader recognises."""

from __future__ import annotations

import linecache
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, TracebackType

Place = tuple[str, int, str]  # file, line, function

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$')
_FILE = re.compile(r'File "(?P<file>[^"\n]+)"')
_HERE = str(Path(__file__).parent)
_PROJECT = str(Path(__file__).parents[2])
_SHELLS = (f"{os.sep}IPython{os.sep}", f"{os.sep}ipykernel{os.sep}")
_LAUNCH = str(Path(_HERE) / "launch.py")
_TORCHRUN = os.path.join("elastic", "multiprocessing", "errors", "__init__.py")
_MODULE = os.path.join("torch", "nn", "modules", "module.py")
_LIBRARIES = (f"{os.sep}torch{os.sep}", f"{os.sep}contextlib.py")


def user_stack(dump: str) -> str:
    """The part of a `faulthandler` dump that is the user's, outermost call first, with source.

    Empty when the rank was not inside a call.
    """
    frames: list[Place] = []
    for block in dump.split("most recent call first"):
        found = [match for line in block.splitlines() if (match := _FRAME.match(line))]
        if any(Path(match["file"]).name == "worker.py" for match in found):
            frames = [(m["file"], int(m["line"]), m["name"]) for m in reversed(found)]
    inside_worker = [i for i, (file, _, _) in enumerate(frames) if file == _worker_file()]
    frames = frames[inside_worker[-1] + 1 :] if inside_worker else []
    return readable_paths(user_frames(frames))


def user_frames(frames: Sequence[Place]) -> str:
    """Frames as a traceback shows them, without the library frames in which they end.

    A call straight into torch.distributed is named in a last line, since no flight record tells.
    """
    frames = [place for place in frames if not _is_plumbing(place[0], place[2])] or frames
    shown = list(frames)
    while shown and _is_library(shown[-1][0]):
        shown.pop()
    hidden = frames[len(shown) :] if shown else []
    lines = []
    for file, line, name in shown or frames:
        lines.append(f'File "{file}", line {line}, in {name}')
        source = linecache.getline(file, line).strip()
        if source:
            lines.append(f"  {source}")
    named = [name for file, _, name in hidden if file.endswith("distributed_c10d.py")]
    if named and not any(file.startswith(_HERE) for file, _, _ in hidden):
        lines.append(f"  (inside torch.distributed.{named[0]})")
    return "\n".join(lines)


def inside_call(tb: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame outside the worker on."""
    while tb is not None and tb.tb_frame.f_code.co_filename == _worker_file():
        tb = tb.tb_next
    return tb


def user_traceback(error: BaseException, tb: TracebackType | None) -> str:
    """The traceback as Python prints it, without frames that only pass a call on."""
    told = traceback.TracebackException(type(error), error, tb)
    _leave_out_plumbing(told)
    return "".join(told.format())


def _leave_out_plumbing(told: traceback.TracebackException) -> None:
    kept = [frame for frame in told.stack if not _is_plumbing(frame.filename, frame.name)]
    told.stack[:] = kept or told.stack
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            _leave_out_plumbing(other)


def calling_frames(tb: TracebackType | None) -> str:
    """The frames of an error raised in this package that belong to whoever called it."""
    places = [(f.filename, f.lineno or 0, f.name) for f in traceback.extract_tb(tb)]
    while places and any(part in places[0][0] for part in _SHELLS):
        places.pop(0)
    return readable_paths(user_frames(places))


def _worker_file() -> str:
    return str(Path(_HERE) / "worker.py")


def _is_plumbing(file: str, function: str) -> bool:
    """Whether a frame only passes a call on: `labkit run`, and the call of an nn.Module."""
    if file == _LAUNCH or file.endswith(_TORCHRUN):
        return True
    return file.endswith(_MODULE) and function in ("_call_impl", "_wrapped_call_impl")


def _is_library(file: str) -> bool:
    return file.startswith(_HERE) or any(part in file for part in _LIBRARIES)


def readable_paths(text: str) -> str:
    """`text` with notebook cells named as the notebook does, and paths as imports see them."""
    return _FILE.sub(lambda match: _readable(match["file"]), text)


def _readable(file: str) -> str:
    cell = _cell_name(file)
    if cell is not None:
        return cell
    roots = [root.rstrip(os.sep) for root in (*sys.path, _PROJECT) if root]
    roots = [root for root in roots if file.startswith(root + os.sep)]
    if roots:
        return f'File "{os.path.relpath(file, max(roots, key=len))}"'
    return f'File "{file}"'


def _cell_name(file: str) -> str | None:
    """`Cell In[3]` for the file name that IPython gave the code of a cell."""
    ipython: ModuleType | None = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return None
    if not hasattr(shell.compile, "format_code_name"):  # IPython 7, which Colab has
        old = re.match(r"<ipython-input-(\d+)-", file)
        return None if old is None else f"Cell In[{old[1]}]"
    name = shell.compile.format_code_name(file)
    return None if name is None else " ".join(name)
