"""Grades as files: CSV, JSON, and Gradescope's results.json. Each appears whole or not at all.

They may be written again and again while grading goes on; what did not change is left alone.
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

from course.grading.gradescope import documents
from course.grading.results import Grades

COLUMNS = ("student", "chapter", "exercise", "points", "max_points", "status", "reason")


def check_writable(path: Path) -> None:
    """Refuse a place where no file can be put, before any work is done for it."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"the folder {path.parent} cannot be written to")


def write_csv(path: Path, grades: Grades) -> None:
    """One line per exercise, with the columns of COLUMNS."""
    _write(path, csv_text(grades))


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


def write_json(path: Path, grades: Grades, about: Mapping[str, Any]) -> None:
    """Everything: the rows that count, each notebook with every verdict, and `about` the run."""
    document = {
        **about,
        "seconds": round(grades.seconds, 1),
        "finished": grades.finished,
        "stopped": grades.stopped,
        "rows": [{name: getattr(row, name) for name in COLUMNS} for row in grades.rows],
        "notebooks": [asdict(notebook) for notebook in grades.notebooks],
    }
    _write(path, json.dumps(document, indent=1) + "\n")


def write_gradescope(path: Path, grades: Grades) -> list[Path]:
    """Gradescope's document of one student at `path`; of several, each beside it.

    Several are called `<stem>.<student><suffix>`, since Gradescope takes one student at a time.
    Returns the files written.
    """
    found = documents(grades)
    single = len(found) == 1
    paths = {
        student: path if single else path.with_name(f"{path.stem}.{student}{path.suffix}")
        for student in found
    }
    for student, document in found.items():
        _write(paths[student], json.dumps(document, indent=1) + "\n")
    return list(paths.values())


def _write(path: Path, text: str) -> None:
    """Write to a file beside `path` and put it in its place."""
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
