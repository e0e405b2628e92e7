"""How a returned value differs from the expected one, in words that do not give it away.

Names the kind of difference, where it is first (index, key), and its size; never the expected
value. Strict about types, since a tuple is not a list and True is not 1, and so is the message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course.grading.plain_data import NUMPY_ARRAY, Foreign

_HINTS = {
    (list, tuple): "square brackets make a list",
    (list, range): "list(...) makes one",
    (tuple, list): "parentheses make a tuple",
    (tuple, Tensor): "a tuple has commas: (a, b)",
    (range, list): "range(start, stop) makes one",
    (range, tuple): "range(start, stop) makes one",
    (int, float): "// divides to a whole number, and int(...) converts",
    (int, Tensor): ".item() gets the number out of a tensor",
    (float, Tensor): ".item() gets the number out of a tensor",
    (Tensor, float): "return the tensor itself, without .item()",
    (Tensor, int): "return the tensor itself, without .item()",
    (Tensor, tuple): "return the tensor alone",
    (Tensor, list): "torch.cat and torch.stack join tensors",
}


@dataclass(frozen=True)
class Difference:
    """The first difference. key: the diagnosis; text: where and how large, without the answer."""

    key: str
    text: str


def difference(expected: Any, returned: Any, tolerance: float) -> Difference | None:
    """How plain data `returned` differs from `expected`; None: it does not.

    tolerance: relative and absolute, for floating-point values. NaN equals NaN. An int is taken
    where a float is expected; nothing else is converted.
    """
    if returned is None and expected is not None:
        return Difference(
            "returns-nothing", "the result is None: a function returns what `return` says"
        )
    return _compare(expected, returned, tolerance, "the result")


def _compare(expected: Any, returned: Any, tolerance: float, where: str) -> Difference | None:
    if isinstance(returned, Foreign):
        return _foreign(expected, returned, where)
    wanted, given = _kind(expected), _kind(returned)
    if wanted is not given and (wanted, given) not in ((float, int), (complex, float)):
        hint = _HINTS.get((wanted, given))
        text = f"{where} is {_a(given)}, and {_a(wanted)} is wanted"
        return Difference("wrong-type", f"{text} ({hint})" if hint else text)
    if wanted is Tensor:
        return _compare_tensors(expected, returned, tolerance, where)
    if wanted in (list, tuple):
        return _compare_sequences(expected, returned, tolerance, where)
    if wanted is dict:
        return _compare_dicts(expected, returned, tolerance, where)
    if wanted in (float, complex):
        return _compare_numbers(expected, returned, tolerance, where)
    if wanted is range:
        return _compare_ranges(expected, returned, where)
    if expected != returned:
        shown = repr(returned)
        return Difference("values-differ", f"{where} is {_short(shown)}, which is not right")
    return None


def _foreign(expected: Any, returned: Foreign, where: str) -> Difference | None:
    if expected == returned:
        return None
    if isinstance(expected, Tensor) and returned.key == "wrong-shape":
        return Difference("wrong-shape", f"{where} is {returned.what}{_want_shape(expected)}")
    wanted = _kind(expected)
    hint = " (torch.from_numpy makes one)" if wanted is Tensor and returned == NUMPY_ARRAY else ""
    return Difference(returned.key, f"{where} is {returned.what}, and {_a(wanted)} is wanted{hint}")


def _compare_tensors(a: Tensor, b: Tensor, tolerance: float, where: str) -> Difference | None:
    given = f"{where} has shape {tuple(b.shape)}"
    if a.shape != b.shape:
        return Difference("wrong-shape", given + _want_shape(a))
    if a.dtype != b.dtype:
        return Difference(
            "wrong-dtype", f"{where} has dtype {_dtype(b)}, and {_dtype(a)} is wanted"
        )
    floating = a.dtype.is_floating_point or a.dtype.is_complex
    if floating:
        wrong = ~torch.isclose(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        wrong = a != b
    count = int(wrong.sum())
    if not count:
        return None
    first = tuple(int(i) for i in wrong.nonzero()[0])
    place = f", the first at index {list(first)}" if first else ""
    text = f"{given} and dtype {_dtype(b)}; {count} of {a.numel()} elements differ{place}"
    if floating:
        text += _magnitude(a[wrong], b[wrong])
    return Difference("values-differ", text)


def _magnitude(a: Tensor, b: Tensor) -> str:
    """How far off the wrong elements are."""
    bad = ~torch.isfinite(b)
    if bad.any():
        kinds = "NaN" if torch.isnan(b).any() else "infinite"
        return f"; {int(bad.sum())} of them are {kinds}"
    gap = (a - b).abs()
    finite = gap[torch.isfinite(gap)]
    return f", the largest difference is {float(finite.max()):.2g}" if finite.numel() else ""


def _compare_sequences(
    a: Sequence[Any], b: Sequence[Any], tolerance: float, where: str
) -> Difference | None:
    if len(a) != len(b):
        items = "item" if len(b) == 1 else "items"
        return Difference(
            "wrong-length",
            f"{where} has {len(b)} {items}, which is {'fewer' if len(b) < len(a) else 'more'} "
            f"than it must have",
        )
    for index, (x, y) in enumerate(zip(a, b, strict=True)):
        found = _compare(x, y, tolerance, _inside(where, index))
        if found is not None:
            return found
    return None


def _compare_dicts(
    a: Mapping[Any, Any], b: Mapping[Any, Any], tolerance: float, where: str
) -> Difference | None:
    missing = [key for key in a if key not in b]
    if missing:
        return Difference("wrong-shape", f"{where} lacks the key {missing[0]!r}")
    more = [key for key in b if key not in a]
    if more:
        return Difference("wrong-shape", f"{where} has the key {_short(repr(more[0]))} too many")
    for key in a:
        found = _compare(a[key], b[key], tolerance, _inside(where, key))
        if found is not None:
            return found
    return None


def _compare_numbers(a: Any, b: Any, tolerance: float, where: str) -> Difference | None:
    if math.isnan(abs(a)) or math.isnan(abs(b)):
        if math.isnan(abs(a)) and math.isnan(abs(b)):
            return None
        return Difference("values-differ", f"{where} is {_short(repr(b))}, which is not right")
    if a == b or (math.isfinite(abs(a)) and abs(a - b) <= tolerance * (1 + abs(a))):
        return None
    size = f", off by about {abs(a - b):.2g}" if math.isfinite(abs(a - b)) else ""
    return Difference("values-differ", f"{where} is {b:.6g}, which is not right{size}")


def _compare_ranges(a: range, b: range, where: str) -> Difference | None:
    if a == b:
        return None
    names = ("step", "start", "stop") if len(b) > 1 else ("start", "stop", "step")
    wrong = [name for name in names if getattr(a, name) != getattr(b, name)]
    return Difference("values-differ", f"{where} is {b!r}, and its {wrong[0]} is not right")


def _inside(where: str, key: Any) -> str:
    """`item [2]` of the result, `item [2]['x']` of that."""
    return (where if where != "the result" else "item ") + f"[{key!r}]"


def _kind(value: Any) -> type[Any]:
    return Tensor if isinstance(value, Tensor) else type(value)


def _a(kind: type[Any]) -> str:
    """A type in words."""
    names: dict[type[Any], str] = {
        Tensor: "a tensor",
        int: "a whole number (int)",
        float: "a number (float)",
        bool: "True or False (bool)",
        str: "a string",
        type(None): "None",
    }
    return names.get(kind, f"a {kind.__name__}")


def _want_shape(expected: Tensor) -> str:
    return f", and {tuple(expected.shape)} is wanted"


def _dtype(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
