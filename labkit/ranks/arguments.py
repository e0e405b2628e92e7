"""A call on its way to the ranks: function and arguments as bytes, and the source behind them."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable
from typing import Any

from labkit.ranks.rank_ref import PoolInRankError, RankRefError
from labkit.ranks.wire import dumps


def dumps_call(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bytes | memoryview:
    """Pickle a call; TypeError names the function or the argument that cannot be pickled."""
    check_function(fn, args, kwargs)
    try:
        return dumps((fn, args, kwargs))
    except (RankRefError, PoolInRankError):
        raise
    except Exception as whole:
        parts = [("the function", fn), *((f"argument {i}", a) for i, a in enumerate(args, 1))]
        parts += [(f"argument {name}", value) for name, value in kwargs.items()]
        for name, part in parts:
            try:
                dumps(part)
            except Exception as error:
                raise TypeError(
                    f"{name} ({type(part).__name__}) cannot be sent to the ranks: {error}"
                ) from None
        raise TypeError(f"the call cannot be sent to the ranks: {whole}") from None


def check_function(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse what no rank could run: no function, a coroutine, arguments that do not fit."""
    if not callable(fn):
        raise TypeError(f"run and put want a function first, not {fn!r}")
    name = getattr(fn, "__name__", "the function")
    if inspect.iscoroutinefunction(fn):
        raise TypeError(f"{name} is an async function; ranks call plain ones: use def")
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(None, *args, **kwargs)
    except TypeError as error:
        raise TypeError(
            f"{name}{signature} is called with a comm first, then your arguments: {error}"
        ) from None


class CallPickler:
    """Turns calls into bytes, for ranks that remember the sources and the path of earlier ones."""

    def __init__(self) -> None:
        self._sources: dict[str, list[str]] = {}
        self._path = list(sys.path)

    def dumps(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        number: int | None,
    ) -> bytes | memoryview:
        """A call as bytes; what cannot be pickled is refused here, before anything is sent.

        `number`: under which the ranks keep the result; None: they return it.
        """
        call = dumps_call(fn, args, kwargs)
        path = list(sys.path) if sys.path != self._path else None
        self._path = list(sys.path)
        return dumps((cell_sources(self._sources), path, number, bytes(call)))


def cell_sources(sent: dict[str, list[str]]) -> dict[str, list[str]]:
    """Source lines of notebook cells that are not in `sent` yet, which is brought up to date.

    Cells are in no file, so ranks could not show their lines in a traceback otherwise.
    """
    new = {
        name: entry[2]
        for name, entry in list(linecache.cache.items())
        if len(entry) == 4 and entry[1] is None and sent.get(name) is not entry[2]
    }
    sent.update(new)
    return new
