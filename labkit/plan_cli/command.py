"""`labkit plan`: the question that was asked, answered as tables or as JSON."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

from rich.console import Console

from labkit.plan.search import search
from labkit.plan_cli.answer_json import engines_of, envelope, schema, search_json
from labkit.plan_cli.arguments import Request
from labkit.plan_cli.search_report import print_search
from labkit.plan_cli.single_questions import answer_explain, answer_fit, answer_kv

_NARROWEST = 100
_TOP = 10


def run(arguments: argparse.Namespace) -> int:
    """Answer; the exit code is 0, or 1 where nothing serves, fits or explains.

    Raises ValueError for a question without an answer: the command prints it and ends with 2.
    """
    request = Request.parse(arguments)
    if request.question == "schema":
        print(json.dumps(schema(), indent=2))
        return 0
    console = _console(quiet=arguments.json)
    body, code = _ANSWERS[request.question](request, console)
    if arguments.json:
        model = request.model
        answer = envelope(request.question, request.model_name, model, body)
        print(json.dumps(answer, indent=2, allow_nan=False))
    return code


def _answer_search(request: Request, console: Console) -> tuple[Any, int]:
    top, engines = request.get("top", _TOP), engines_of(request.arguments.engine)
    if top < 1:
        raise ValueError(f"--top is {top}; it must be at least 1")
    answer = search(request.search_question)
    if request.arguments.json:
        body = search_json(answer, request.hf_name, top, engines)
    else:
        body = None
        print_search(console, answer, request.hf_name, top, engines)
    return body, 0 if answer.ranked else 1


_ANSWERS: dict[str, Callable[[Request, Console], tuple[Any, int]]] = {
    "search": _answer_search,
    "fit": answer_fit,
    "kv": answer_kv,
    "explain": answer_explain,
}


def _console(*, quiet: bool) -> Console:
    """As wide as the terminal, and never so narrow that tables lose their columns."""
    console = Console(quiet=quiet, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(quiet=quiet, highlight=False, width=_NARROWEST + 20)
    elif console.width < _NARROWEST:
        console = Console(quiet=quiet, highlight=False, width=_NARROWEST)
    return console
