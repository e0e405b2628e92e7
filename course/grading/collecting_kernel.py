"""The kernel in which a submission's cells run: ipykernel's, which can also hand functions over.

The order to do so comes as an execute request and is answered by the kernel itself: no name that a
notebook may have redefined takes part. What `check` is given comes to `record_checked`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch  # noqa: F401  (loaded before the first cell's time limit runs)
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

from course.grading.function_bytes import FunctionProblem, pack_function
from course.grading.handover import Order, Taken, as_json, order_in
from course.grading.own_modules import pack_with_modules

_pack, _pack_alone, _problem = pack_with_modules, pack_function, FunctionProblem
_order_in, _as_json, _open, _replace = order_in, as_json, open, os.replace
_work_folder = os.getcwd()


class CollectingKernel(IPythonKernel):
    """An IPython kernel that pickles the functions it is asked for into a file."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self._checked: dict[str, Taken] = {}
        self._news: set[str] = set()  # checked since last time
        self._known: dict[str, Any] = {}  # what was handed over unchecked

    def record_checked(self, name: str, function: Any) -> None:
        """Keep `function` as it is now: it is what an exercise that wants `name` is judged by."""
        self._checked[name] = _taken(function, is_checked=True)
        self._news.add(name)

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: Any = None,
        allow_stdin: bool = False,
        **more: Any,
    ) -> dict[str, Any]:
        """A cell, or an order to hand functions over."""
        order = _order_in(code)
        if order is None:
            return await super().do_execute(
                code, silent, store_history, user_expressions, allow_stdin, **more
            )
        with _open(order.file + ".part", "w") as stream:
            stream.write(_as_json(self._take(order)))
        _replace(order.file + ".part", order.file)
        return {
            "status": "ok",
            "execution_count": self.execution_count,
            "payload": [],
            "user_expressions": {},
        }

    def _take(self, order: Order) -> dict[str, Taken]:
        """The functions asked for; a name that is not defined is left out."""
        found: dict[str, Taken] = {}
        assert self.shell is not None
        namespace = self.shell.user_ns
        for name in order.names:
            if name in self._checked:
                if name in self._news or not order.only_new:
                    found[name] = self._checked[name]
                self._news.discard(name)
            elif name in namespace:
                value = namespace[name]
                if not order.only_new or self._known.get(name, self._known) is not value:
                    self._known[name] = value
                    found[name] = _taken(value)
        return found


def _taken(value: Any, *, is_checked: bool = False) -> Taken:
    """The function's bytes, or why there are none."""
    try:
        packed = _pack(value, _pack_alone, _work_folder)
        return Taken(packed, is_checked=is_checked)
    except _problem as problem:
        return Taken(key=problem.key, text=problem.text, is_checked=is_checked)
    except Exception as error:
        told = f"it cannot be pickled: {type(error).__name__}"
        return Taken(key="cannot-be-sent", text=told, is_checked=is_checked)


_launch: Callable[..., None] = IPKernelApp.launch_instance

if __name__ == "__main__":
    sys.path.append(_work_folder)  # last: a module of the notebook's own hides no other
    _launch(kernel_class=CollectingKernel, ignore_cwd=True)
