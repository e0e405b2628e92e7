"""One call of a student's function, seen from the rank it runs on."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from course.grading.comparison import difference
from course.grading.function_bytes import FunctionProblem, load_function
from course.grading.plain_data import Foreign, named, plain
from labkit.ranks.comm import Comm
from labkit.ranks.stack import user_frames
from labkit.ranks.trace import TracedComm
from labkit.ranks.trace_events import Trace
from labkit.ranks.wire import text_of


@dataclass(frozen=True)
class CallRecord:
    """What one rank's call did: what it returned as plain data, and the rest as in `Outcome`."""

    returned: Any
    trace: Trace
    changed: tuple[str, ...]


class StudentError(Exception):
    """What the student's function raised, in plain text: its own class stays on the rank."""

    def __init__(self, type_name: str, text: str, place: str) -> None:
        super().__init__(type_name, text, place)
        self.type_name = type_name
        self.text = text
        self.place = place  # the student's frames, as a traceback shows them

    def __str__(self) -> str:
        return self.text


def process_id(comm: Comm) -> int:
    """Of this rank. Once it answers, it has started and imported what judging needs."""
    return os.getpid()


def run_case(
    comm: Comm,
    packed: bytes,
    arguments: Sequence[Mapping[str, Any]],
    parameters: Sequence[str],
    with_comm: bool,
) -> CallRecord:
    """Load the function and call it with this rank's `arguments`; `comm` comes first if wanted.

    Raises FunctionProblem when it cannot be called so, StudentError when the call raised.
    """
    function = load_function(packed)
    mine = dict(arguments[comm.rank])
    traced = TracedComm(comm)
    positional = (traced,) if with_comm else ()
    _check_signature(function, positional, mine, parameters)
    device = comm.device.type
    before = {name: plain(value, device) for name, value in mine.items()}
    try:
        returned = function(*positional, **mine)
    except SystemExit:
        raise
    except BaseException as error:
        raise _in_plain_text(error) from None
    after = {name: plain(value, device) for name, value in mine.items()}
    changed = [name for name in before if difference(before[name], after[name], 0.0)]
    return CallRecord(_as_plain_data(returned, device), traced.trace, tuple(changed))


def _as_plain_data(returned: Any, device: str) -> Any:
    try:
        return plain(returned, device)
    except Exception as error:
        return Foreign(f"{named(type(returned))} that cannot be read ({type(error).__name__})")


def _check_signature(
    function: Callable[..., Any],
    positional: tuple[Any, ...],
    named: Mapping[str, Any],
    parameters: Sequence[str],
) -> None:
    if not callable(function):
        raise FunctionProblem("not-a-function", f"a {type(function).__name__} is no function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        name = getattr(function, "__name__", "your function")
        raise FunctionProblem(
            "wrong-signature",
            f"the function must take ({', '.join(parameters)}), and yours is "
            f"`def {name}{signature}`: {error}",
        ) from None


def _in_plain_text(error: BaseException) -> StudentError:
    """The error as plain text; its type's name shows in the rank's report all the same."""
    name = type(error).__name__
    told = type(name, (StudentError,), {"__module__": "builtins", "__reduce__": _as_student_error})
    made: StudentError = told(name, text_of(error), _place(error.__traceback__))
    return made


def _as_student_error(error: StudentError) -> tuple[Any, ...]:
    return StudentError, (error.type_name, error.text, error.place)


def _place(tb: TracebackType | None) -> str:
    """The student's part of a traceback."""
    frames = [(f.filename, f.lineno or 0, f.name) for f in traceback.extract_tb(tb)]
    own = [frame for frame in frames if frame[0] != os.path.abspath(__file__)]
    return user_frames(own)
