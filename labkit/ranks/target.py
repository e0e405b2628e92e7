"""`module:function` or `path/to/file.py:function`: the function that `labkit run` calls."""

import difflib
import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any


class TargetError(ValueError):
    """There is no such module or function, or it does not take these arguments."""


@dataclass(frozen=True)
class Arguments:
    """What the function gets after `comm`."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str | None) -> "Arguments":
        """`{"steps": 3}` names arguments, `[3, "x"]` lists them; None: no arguments."""
        if text is None:
            return cls()
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise TargetError(
                f"--args {text!r} is not JSON ({error}); "
                f"""write '{{"steps": 3}}' for named arguments or '[3]' for a list"""
            ) from None
        if isinstance(value, dict):
            return cls(named=value)
        if isinstance(value, list):
            return cls(positional=tuple(value))
        raise TargetError(f"--args {text!r} must be an object (named) or a list, as in '[{text}]'")


def find_function(target: str) -> Callable[..., Any]:
    """The function that `target` names; its module is imported, from the current folder too."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise TargetError(
            f"{target!r} names no function; write module:function or file.py:function"
        )
    module = _load_file(place) if place.endswith(".py") else _load_module(place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise TargetError(f"{place} has no function {name!r}{_did_you_mean(name, module)}")
        value = getattr(value, part)
    if not callable(value):
        raise TargetError(
            f"{name} in {place} is {type(value).__name__} {value!r}, which cannot be called"
            f"{_did_you_mean(name, module)}"
        )
    return value


def absolute(target: str) -> str:
    """`target` as it also reads from another folder."""
    place, _, name = target.rpartition(":")
    return f"{Path(place).expanduser().resolve()}:{name}" if place.endswith(".py") else target


def check_call(target: str, function: Callable[..., Any], arguments: Arguments) -> None:
    """`function` must take a comm and then `arguments`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(None, *arguments.positional, **arguments.named)
    except TypeError as error:
        raise TargetError(
            f"{target} is called with a Comm first and then --args, and that does not fit its "
            f"signature {signature}: {error}"
        ) from None


def _load_module(name: str) -> ModuleType:
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing != name and not name.startswith(f"{missing}."):
            raise _import_error(name, error) from error
        hint = f"; the file is there, so write {name}.py:..." if Path(f"{name}.py").exists() else ""
        raise TargetError(
            f"there is no module {name!r} on the path or in this folder{hint}"
        ) from None
    except Exception as error:
        raise _import_error(name, error) from error


def _load_file(path: str) -> ModuleType:
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        raise TargetError(f"there is no file {path}{_similar_files(Path(path))}")
    loaded = sys.modules.get(file.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(file):
        return loaded
    name = file.stem if loaded is None else f"{file.stem}_from_file"
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise _import_error(path, error) from error
    return module


def _import_error(place: str, error: Exception) -> TargetError:
    return TargetError(f"{place} cannot be imported: {type(error).__name__}: {error}")


def _did_you_mean(name: str, module: ModuleType) -> str:
    own = [
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    return _suggestion(name, own)


def _similar_files(path: Path) -> str:
    folder = path.parent
    return _suggestion(path.name, [p.name for p in folder.glob("*.py")] if folder.is_dir() else [])


def _suggestion(name: str, candidates: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, candidates, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    public = [candidate for candidate in candidates if not candidate.startswith("_")]
    return f"; there is {', '.join(public[:5])}" if public else ""
