"""Results that follow from a model and a key, kept for as long as the model lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from labkit.plan.model import ModelSpec

_Result = TypeVar("_Result")


class KeptByModel(Generic[_Result]):
    """Models are told apart by identity: comparing two means comparing every layer."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[ModelSpec], dict[Hashable, _Result]]] = {}

    def get(self, model: ModelSpec, key: Hashable, make: Callable[[], _Result]) -> _Result:
        """What is kept for the model and the key; made first if there is nothing."""
        held = self._kept.get(id(model))
        if held is None or held[0]() is not model:
            held = self._kept[id(model)] = weakref.ref(model), {}
            weakref.finalize(model, self._kept.pop, id(model), None)
        if key not in held[1]:
            held[1][key] = make()
        return held[1][key]
