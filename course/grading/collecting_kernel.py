"""The kernel in which a submission's cells run: ipykernel's, which can also hand functions over.

The request to do so comes as an execute request whose code starts with `TAKE`, and is answered by
the kernel itself: no name that a notebook may have redefined takes part.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from typing import Any

import torch  # noqa: F401  (loaded before the first cell's time limit runs)
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

from course.grading.function_bytes import FunctionProblem, pack_function

TAKE = "# labkit takes functions: "

_pack, _problem, _encode = pack_function, FunctionProblem, base64.b64encode
_load, _dump, _open, _replace = json.loads, json.dumps, open, os.replace


class CollectingKernel(IPythonKernel):
    """An IPython kernel that pickles the functions it is asked for into a file."""

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: Any = None,
        allow_stdin: bool = False,
        **more: Any,
    ) -> dict[str, Any]:
        """A cell, or a request to hand functions over."""
        if not code.startswith(TAKE):
            return await super().do_execute(
                code, silent, store_history, user_expressions, allow_stdin, **more
            )
        order = _load(code[len(TAKE) :])
        self._hand_over(order["names"], order["file"], order["only_new"])
        return {
            "status": "ok",
            "execution_count": self.execution_count,
            "payload": [],
            "user_expressions": {},
        }

    def _hand_over(self, names: list[str], file: str, only_new: bool) -> None:
        """Write {name: what it is}; a name that is not defined is left out."""
        known: dict[str, Any] = self.__dict__.setdefault("_handed_over", {})
        found: dict[str, dict[str, str]] = {}
        assert self.shell is not None
        namespace = self.shell.user_ns
        for name in names:
            if name not in namespace:
                continue
            value = namespace[name]
            if only_new and known.get(name, known) is value:
                continue
            known[name] = value
            found[name] = _handed(value)
        with _open(file + ".part", "w") as stream:
            stream.write(_dump(found))
        _replace(file + ".part", file)


def _handed(value: Any) -> dict[str, str]:
    """The function's bytes in base 64, or why there are none."""
    try:
        return {"bytes": _encode(_pack(value)).decode()}
    except _problem as problem:
        return {"key": problem.key, "text": problem.text}
    except Exception as error:
        return {"key": "cannot-be-sent", "text": f"it cannot be pickled: {type(error).__name__}"}


_launch: Callable[..., None] = IPKernelApp.launch_instance

if __name__ == "__main__":
    _launch(kernel_class=CollectingKernel)
