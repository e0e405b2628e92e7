"""What students handed in: files found, notebooks read, the chapter each one belongs to."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

MOST_BYTES = 64 << 20
_CALLED_AFTER = "The file lies in no student's folder, so its name is taken for the student's"
_DEFINITION = r"(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+{0}\b|^{0}[ \t]*(?::[^=\n]+)?=[^=]"


class UnreadableError(Exception):
    """A file that is no notebook. Its text says why, as it goes on after "the file"."""


@dataclass(frozen=True)
class Submission:
    """One file of one student. name: the path below the student's folder.

    student: "" where nothing tells whose it is. note: how it was found, where that is worth a word.
    """

    student: str
    path: Path
    name: str
    note: str = ""


@dataclass(frozen=True)
class Notebook:
    """The code cells of a notebook, and what its metadata say its chapter is."""

    cells: tuple[str, ...]
    chapter: str | None

    def cells_defining(self, function: str) -> tuple[int, ...]:
        """Which code cells define `function`, from 0."""
        pattern = re.compile(_DEFINITION.format(re.escape(function)))
        return tuple(i for i, cell in enumerate(self.cells) if pattern.search(cell))


def find_submissions(root: Path) -> tuple[list[Submission], list[str]]:
    """The notebooks below `root`, laid out as `<student>/<chapter>.ipynb`, and all students.

    Deeper folders count too, as unpacked archives make them. Where no folder holds a notebook, the
    names of those in `root` itself are taken for their students'. Raises FileNotFoundError or
    NotADirectoryError where `root` is no folder.
    """
    if not root.exists():
        raise FileNotFoundError(f"there is no folder {root}")
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is a file; want a folder with one folder per student")
    found: list[Submission] = []
    students = sorted(p.name for p in root.iterdir() if p.is_dir() and not _is_passed_over(p.name))
    students = [name for name in students if not _is_notebook_name(name)]
    for student in students:
        for folder, folders, files in os.walk(root / student):
            folders[:] = sorted(name for name in folders if not _is_passed_over(name))
            like_notebooks = [name for name in folders if _is_notebook_name(name)]
            folders[:] = [name for name in folders if name not in like_notebooks]
            for name in sorted([*files, *like_notebooks]):
                if _is_notebook_name(name) and not name.startswith("."):
                    path = Path(folder) / name
                    found.append(Submission(student, path, str(path.relative_to(root / student))))
    loose = [path for path in sorted(root.iterdir()) if _is_notebook_name(path.name)]
    loose = [path for path in loose if not _is_passed_over(path.name)]
    if found or not loose:
        return [*(Submission("", path, path.name) for path in loose), *found], students
    students = sorted({*students, *(path.stem for path in loose)})
    return [Submission(path.stem, path, path.name, _CALLED_AFTER) for path in loose], students


def read_notebook(path: Path) -> Notebook:
    """The notebook in a file. Raises UnreadableError."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableError("is a folder, not a notebook")
        if not stat.S_ISREG(mode):
            raise UnreadableError("is no regular file")
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableError(f"is larger than {MOST_BYTES >> 20} MiB")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableError("is no text in UTF-8, so no notebook") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from None
    if not text.strip():
        raise UnreadableError("is empty")
    try:
        logging.getLogger("traitlets").disabled = True  # nbformat complains there of small things
        document = nbformat.reads(text, as_version=4)
        return _notebook(document)
    except nbformat.reader.NotJSONError:
        raise UnreadableError("is not JSON, so no notebook") from None
    except RecursionError:
        raise UnreadableError("is nested too deeply for a notebook") from None
    except Exception as error:
        told = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise UnreadableError(f"is JSON, but no notebook that can be read: {told}") from None


def chapter_of(
    submission: Submission,
    notebook: Notebook | None,
    functions: Mapping[str, Sequence[str]],
) -> str | None:
    """The chapter of a notebook: its metadata's, else by the functions it defines, else its name's.

    functions: chapter -> the functions its exercises ask for. None: it belongs to none of them.
    """
    if notebook is not None:
        if notebook.chapter in functions:
            return notebook.chapter
        counts = {
            chapter: sum(bool(notebook.cells_defining(name)) for name in names)
            for chapter, names in functions.items()
        }
        best = max(counts, key=lambda chapter: counts[chapter], default=None)
        if best is not None and counts[best]:
            return best
    stem = Path(submission.name).stem
    named = [chapter for chapter in functions if stem == chapter]
    return next(iter(named or [chapter for chapter in functions if chapter in stem]), None)


def _notebook(document: Any) -> Notebook:
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    sources = [cell["source"] for cell in cells]
    texts = ["".join(source) if isinstance(source, list) else str(source) for source in sources]
    labkit = document["metadata"].get("labkit", {})
    chapter = labkit.get("chapter") if isinstance(labkit, dict) else None
    return Notebook(tuple(texts), chapter if isinstance(chapter, str) else None)


def _is_passed_over(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _is_notebook_name(name: str) -> bool:
    return name.lower().endswith(".ipynb")
