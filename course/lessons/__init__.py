"""The lessons, one module each; every module defines `LESSON`."""

from __future__ import annotations

from importlib import import_module

from course.lessons.content import Lesson

_MODULES = {
    "00_start_here": "start_here",
    "01_collectives": "collectives",
    "02_tensor_parallel": "tensor_parallel",
    "03_layout_planning": "layout_planning",
}


def names() -> tuple[str, ...]:
    """Every lesson, in order."""
    return tuple(_MODULES)


def load(name: str) -> Lesson:
    """The lesson called `name`, which is its notebook's file name without the ending.

    Raises LookupError that lists the lessons there are.
    """
    if name not in _MODULES:
        raise LookupError(f"no lesson is called {name!r}; there are {', '.join(names())}")
    lesson: Lesson = import_module(f"course.lessons.{_MODULES[name]}").LESSON
    return lesson
