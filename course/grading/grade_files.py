"""Grades as files: CSV, JSON, and Gradescope's results.json. Each appears whole or not at all.

They may be written again and again while grading goes on: until it is complete, and where
nothing could be graded, each is called `<file>.partial`, and what an earlier run wrote stays.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course.grading.gradescope import documents, students
from course.grading.results import Grades

COLUMNS = ("student", "chapter", "exercise", "points", "max_points", "status", "reason", "notes")


def check_writable(path: Path) -> None:
    """Refuse a place where no file can be put, before any work is done for it."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"the folder {path.parent} cannot be written to")


def write_csv(path: Path, grades: Grades) -> Path:
    """One line per exercise, with the columns of COLUMNS. Returns the file written."""
    return _write(path, csv_text(grades), grades.may_replace_files)


def csv_text(grades: Grades) -> str:
    """The CSV file's text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in grades.rows:
        writer.writerow(
            f"{value:g}" if isinstance(value, float) else value
            for value in (getattr(row, name) for name in COLUMNS)
        )
    return stream.getvalue()


def write_json(path: Path, grades: Grades, about: Mapping[str, Any]) -> Path:
    """Everything: the rows that count, each notebook with every verdict, and `about` the run.

    Returns the file written.
    """
    document = {
        **about,
        "seconds": round(grades.seconds, 1),
        "finished": grades.finished,
        "stopped": grades.stopped,
        "rows": [{name: getattr(row, name) for name in COLUMNS} for row in grades.rows],
        "notebooks": [asdict(notebook) for notebook in grades.notebooks],
    }
    return _write(path, json.dumps(document, indent=1) + "\n", grades.may_replace_files)


def write_gradescope(path: Path, grades: Grades) -> list[Path]:
    """Gradescope's document of one student at `path`; of several, each beside it.

    Several are called `<stem>.<student><suffix>`, since Gradescope takes one student at a time.
    Students with something that was not graded get none. Returns the files written.
    """
    found, everybody = documents(grades), students(grades)
    written: list[Path] = []
    for student in everybody:
        name = f"{path.stem}.{student}{path.suffix}"
        own = path if len(everybody) == 1 else path.with_name(name)
        if student in found:
            text = json.dumps(found[student], indent=1) + "\n"
            written.append(_write(own, text, grades.may_replace_files))
        elif grades.may_replace_files:
            partial_path(own).unlink(missing_ok=True)
    return written


def partial_path(path: Path) -> Path:
    """Where a file is while its run is not complete."""
    return path.with_name(f"{path.name}.partial")


def _write(path: Path, text: str, is_complete: bool) -> Path:
    """Write to a file beside `path`, or its partial one, and put it in its place; which it was."""
    if is_complete:
        _replace(path, text)
        partial_path(path).unlink(missing_ok=True)
        return path
    _replace(partial_path(path), text)
    return partial_path(path)


def _replace(path: Path, text: str) -> None:
    content = text.encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
