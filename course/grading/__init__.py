"""Exercises judged on real ranks: `check` in a notebook, `labkit grade` over many.

Grading is for honest students and their accidents. A submission's function runs on ranks only,
which are processes of their own with a deadline; it comes back as plain data, which is compared
where none of its code runs. So an endless loop, a dead process, a huge result or a class with an
`__eq__` of its own cost that exercise and nothing else. It is no sandbox: a function that means
harm can still read files, or meddle with the rank it runs on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course.grading.notebook_check import check
    from course.grading.report import Report

_HOME = {"check": "notebook_check", "Report": "report"}

__all__ = ["Report", "check"]


def __getattr__(name: str) -> Any:
    """Import the module that holds `name` on first use: ranks need little of this package."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
