"""JSON files that come with a model and may be damaged, or made to do damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded as it is; the sentence names the file and the tensor."""


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; CheckpointError if it is damaged."""
    try:
        return parse_json(path.read_bytes(), str(path))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def parse_json(text: bytes, what: str) -> dict[str, Any]:
    """A JSON object from its UTF-8 bytes; CheckpointError, about `what`, if it is none."""
    try:
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # RecursionError: brackets nested too deeply
        raise CheckpointError(f"{what} is not readable JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{what} holds a JSON {type(value).__name__}, not an object")
    return value
