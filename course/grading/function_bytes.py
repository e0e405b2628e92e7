"""A student's function as bytes: made where it was defined, loaded on a rank and nowhere else.

What it needs of the notebook (globals, helper functions, classes) travels with it by value, and
each load starts from those values again. The source lines of notebook cells travel too, so that
tracebacks show them.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any

from course.grading.plain_data import named
from labkit.ranks.arguments import cell_sources
from labkit.ranks.wire import dumps, loads, text_of

MAX_BYTES = 64 << 20
"""Of a function with all it needs: more than that is a model or a data set, not code."""


class FunctionProblem(Exception):
    """What was given cannot be run as the exercise's function. `key` and `text`: the diagnosis."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(key, text)
        self.key = key
        self.text = text


def pack_function(function: Any) -> bytes:
    """`function` as bytes that `load_function` takes.

    Raises FunctionProblem when it is no function, or needs what cannot leave this process.
    """
    if not callable(function):
        given = "None" if function is None else named(type(function))
        raise FunctionProblem(
            "not-a-function",
            f"the check got {given}, not a function: pass the function by its name alone, "
            f"without parentheses behind it",
        )
    if inspect.iscoroutinefunction(function):
        raise FunctionProblem("not-a-function", "this is an async function: define it with `def`")
    try:
        body = bytes(dumps(function))
    except Exception as error:
        raise FunctionProblem(
            "cannot-be-sent", f"the function cannot go to the ranks: {_cause(function, error)}"
        ) from None
    if len(body) > MAX_BYTES:
        raise FunctionProblem(
            "cannot-be-sent",
            f"the function takes {len(body) / 2**20:.0f} MiB of your notebook along"
            f"{_heaviest(function)}; the limit is {MAX_BYTES >> 20} MiB. Use its arguments alone",
        )
    return bytes(dumps((cell_sources({}), body)))


def load_function(packed: bytes) -> Callable[..., Any]:
    """The function in `packed`, with globals of its own.

    Raises FunctionProblem when it cannot be rebuilt here, such as for want of a module.
    """
    try:
        sources, body = loads(packed)
        for name, lines in sources.items():
            linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
        function: Callable[..., Any] = loads(body)
    except Exception as error:
        raise FunctionProblem(
            "cannot-be-sent",
            f"the function cannot be rebuilt on a rank: {type(error).__name__}: {text_of(error)}",
        ) from None
    return function


def _needs(function: Any) -> dict[str, Any]:
    """What a function uses of its surroundings, by name."""
    try:
        found = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        return {}
    return {**found.globals, **found.nonlocals}


def _cause(function: Any, error: Exception) -> str:
    for name, value in _needs(function).items():
        try:
            dumps(value)
        except Exception as own:
            return f"it uses `{name}` ({type(value).__name__}): {text_of(own)}"
    return text_of(error)


def _heaviest(function: Any) -> str:
    sizes = {name: len(dumps(value)) for name, value in _needs(function).items()}
    if not sizes:
        return ""
    name = max(sizes, key=sizes.__getitem__)
    return f", most of it `{name}`"
