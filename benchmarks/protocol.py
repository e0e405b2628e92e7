"""What the benchmark and a side's process say to each other: one JSON line per message.

A side's process reads requests from standard input and answers on standard output, each answer
behind MARK so that whatever a library prints is not taken for one.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

MARK = "@answer "


@dataclass(frozen=True)
class Request:
    """Decode `new_tokens` greedily after each prompt; all prompts have the same length."""

    dtype: str
    threads: int
    prompts: list[list[int]]
    new_tokens: int
    variant: str = ""
    """Which of the side's own settings to use, such as its kind of KV cache."""


@dataclass(frozen=True)
class Answer:
    """`seconds` covers the steps after the first new token, which the prefill yields."""

    seconds: float
    tokens: list[list[int]] = field(default_factory=list)
    """The new tokens of each prompt."""
    settings: str = ""
    error: str = ""


READY = Answer(seconds=0.0, settings="ready")
"""The first answer, unasked: the process has imported what it needs and waits."""

Run = Callable[[Request], Answer]


def encode(message: Request | Answer) -> str:
    """One line, without its newline."""
    return json.dumps(asdict(message))


def decode_request(line: str) -> Request:
    """Inverse of `encode` for a request."""
    return Request(**json.loads(line))


def decode_answer(line: str) -> Answer | None:
    """The answer in a line of a side's output; None if the line is something a library printed."""
    if not line.startswith(MARK):
        return None
    fields: dict[str, Any] = json.loads(line.removeprefix(MARK))
    return Answer(**fields)


def answer(run: Run, request: Request) -> Answer:
    """Run one request; a failure becomes an answer with the traceback in `error`."""
    try:
        return run(request)
    except Exception:
        return Answer(seconds=0.0, error=traceback.format_exc())


def serve(run: Run, source: TextIO = sys.stdin, sink: TextIO = sys.stdout) -> None:
    """Say that imports are done, then answer requests until standard input ends."""
    print(MARK + encode(READY), file=sink, flush=True)
    for line in source:
        print(MARK + encode(answer(run, decode_request(line))), file=sink, flush=True)
