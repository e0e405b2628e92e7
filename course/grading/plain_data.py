"""What a function returned, as plain data: exact built-in types and plain CPU tensors.

Made on the rank. Whatever a student's class overrides (`__eq__`, `__reduce__`, a tensor's
`__torch_function__`) stays there; the judge compares only what this module lets through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor

MAX_TENSOR_BYTES = 64 << 20
MAX_ITEMS = 100_000
"""In all lists, tuples, sets and dicts of one value together."""
MAX_DEPTH = 20
MAX_BITS = 1000
"""Of a whole number."""
MAX_RANGE_ITEMS = 10_000_000
"""In all ranges of one value together: a range costs nothing until somebody goes through it."""


@dataclass(frozen=True)
class Foreign:
    """Stands for a value that does not cross. `what`: in words, such as "a generator"."""

    what: str
    key: str = "wrong-type"


NUMPY_ARRAY = Foreign("a NumPy array")


def plain(value: Any, device: str = "cpu") -> Any:
    """A copy of `value` made of plain data.

    Tensors must be on `device`, and lose their gradient history. Subclasses of built-in types
    become those; NumPy scalars become Python's. Anything else becomes a `Foreign`.
    """
    return _Copier(device).copy(value, 0)


class _Copier:
    def __init__(self, device: str) -> None:
        self._device = device
        self._items = 0
        self._range_items = 0

    def copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if value is None or kind in (bool, float, complex):
            return value
        if kind is range:
            return self._range(value)
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, numpy.ndarray):
            return NUMPY_ARRAY
        if isinstance(value, numpy.generic):
            return self.copy(value.item(), depth + 1) if depth < MAX_DEPTH else Foreign(named(kind))
        if isinstance(value, int):
            number = int.__add__(value, 0)  # without what a subclass overrides; so below
            return Foreign("a huge whole number") if number.bit_length() > MAX_BITS else number
        if isinstance(value, float):
            return float.__add__(value, 0.0)
        if isinstance(value, complex):
            return complex.__add__(value, 0j)
        for text in (str, bytes):
            if isinstance(value, text):
                return self._text(text, value)
        for container in (list, tuple, dict, set, frozenset):
            if isinstance(value, container):
                return self._container(container, value, depth)
        return Foreign(named(kind))

    def _range(self, value: range) -> range | Foreign:
        edges = (value.start, value.stop, value.step)
        if any(edge.bit_length() > MAX_BITS for edge in edges):
            return Foreign("a range of huge whole numbers")
        self._range_items += max(0, (value.stop - value.start) // value.step)  # len() overflows
        if self._range_items > MAX_RANGE_ITEMS:
            return Foreign("an endlessly long range", key="wrong-shape")
        return value

    def _text(self, kind: type[Any], value: Any) -> Any:
        if kind.__len__(value) > MAX_ITEMS:
            return Foreign(f"a {kind.__name__} of more than {MAX_ITEMS} characters")
        return kind.__add__(value, kind())

    def _tensor(self, value: Tensor) -> Tensor | Foreign:
        if type(value) not in (Tensor, torch.nn.Parameter):
            return Foreign(f"{named(type(value))} in place of a plain torch.Tensor")
        if value.layout is not torch.strided or value.is_quantized:
            return Foreign("a sparse or quantized tensor")
        if value.device.type != self._device:
            return Foreign(f"a tensor on {value.device}", key="wrong-device")
        if value.numel() * value.element_size() > MAX_TENSOR_BYTES:
            return Foreign(f"a huge tensor of shape {tuple(value.shape)}", key="wrong-shape")
        return value.detach().resolve_conj().resolve_neg().cpu().contiguous().clone()

    def _container(self, kind: type[Any], value: Any, depth: int) -> Any:
        self._items += kind.__len__(value)
        if depth >= MAX_DEPTH:
            return Foreign(f"a {kind.__name__} nested more than {MAX_DEPTH} deep")
        if self._items > MAX_ITEMS:
            return Foreign(f"a {kind.__name__} with more than {MAX_ITEMS} items in all")
        if kind is dict:
            pairs = [
                (self.copy(key, depth + 1), self.copy(dict.__getitem__(value, key), depth + 1))
                for key in dict.__iter__(value)
            ]
            if any(isinstance(key, Tensor | list | dict | set) for key, _ in pairs):
                return Foreign("a dict with unusual keys")
            return dict(pairs)
        items = [self.copy(item, depth + 1) for item in kind.__iter__(value)]
        if kind in (set, frozenset) and any(isinstance(i, Tensor | Foreign) for i in items):
            return Foreign("a set with unusual members")
        return kind(items)


def named(kind: type[Any]) -> str:
    """`a generator`, `an ndarray`."""
    name = kind.__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
