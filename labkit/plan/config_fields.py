"""Typed access to the fields of a model config.

Every reader either returns a value of the type it names or refuses the field by its name:
what a config says is never rounded, guessed or converted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard


class UnsupportedModelError(ValueError):
    """A config field with a value this project does not implement, or without one it needs."""

    def __init__(self, field: str, value: object, why: str) -> None:
        self.field = field
        self.value = value
        self.why = why
        super().__init__(f"config field {field} = {_shown(value)}: {why}")

    def __reduce__(self) -> tuple[type[UnsupportedModelError], tuple[object, ...]]:
        return type(self), (self.field, self.value, self.why)


class ConfigFields:
    """One JSON object of a config; `prefix` is what its fields are called by in errors.

    A field that is absent or null gives the default; a reader called without one needs the field.
    """

    def __init__(self, values: Mapping[str, Any], prefix: str = "") -> None:
        self.values = values
        self.prefix = prefix

    def refuse(self, field: str, why: str) -> UnsupportedModelError:
        """The error to raise for the value `field` has."""
        return UnsupportedModelError(self.prefix + field, self.values.get(field), why)

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(field) is not None

    def positive_int(self, field: str, default: int | None = None) -> int:
        if default is not None and not self.has(field):
            return default
        value = self.values.get(field)
        if not is_whole(value) or value < 1:
            raise self.refuse(field, "a positive whole number is needed")
        return value

    def number(
        self, field: str, default: float | None = None, *, at_least: float | None = None
    ) -> float:
        """A finite number that is positive, or `at_least` so large.

        Null is no default here: where the formula needs a number, null is a mistake.
        """
        if default is not None and field not in self.values:
            return default
        value = _finite(self.values.get(field))
        if at_least is not None:
            if value is None or value < at_least:
                raise self.refuse(field, f"a finite number of at least {at_least:g} is needed")
        elif value is None or value <= 0:
            raise self.refuse(field, "a positive finite number is needed")
        return value

    def optional_number(self, field: str, *, at_least: float | None = None) -> float | None:
        return self.number(field, at_least=at_least) if self.has(field) else None

    def flag(self, field: str, default: bool = False) -> bool:
        value = self.values.get(field)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(field, "true or false is needed")
        return value

    def word(self, field: str, default: str) -> str:
        value = self.values.get(field)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.refuse(field, "a string is needed")
        return value

    def words(self, field: str) -> tuple[str, ...]:
        """A list of strings; empty where there is none."""
        value = self.values.get(field)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise self.refuse(field, "a list of strings is needed")
        return tuple(value)

    def sequence(self, field: str) -> tuple[Any, ...]:
        """A JSON list of anything; empty where there is none."""
        value = self.values.get(field)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            raise self.refuse(field, "a list is needed")
        return tuple(value)

    def marks(self, field: str, count: int) -> tuple[bool, ...]:
        """A list of `count` zeros and ones."""
        value = self.sequence(field)
        if len(value) != count or not all(is_whole(mark) and mark in (0, 1) for mark in value):
            raise self.refuse(field, f"a 0 or 1 for each of {count} layers is needed")
        return tuple(mark == 1 for mark in value)

    def nested(self, field: str) -> Mapping[str, Any]:
        """A JSON object; empty where there is none."""
        value = self.values.get(field)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.refuse(field, "a JSON object is needed")
        return value

    def token_ids(self, field: str, vocab_size: int) -> tuple[int, ...]:
        """One token id or a list of them, inside the vocabulary; empty where there is none."""
        value = self.values.get(field)
        if value is None:
            return ()
        ids = list(value) if isinstance(value, list | tuple) else [value]
        if not all(is_whole(token) and 0 <= token < vocab_size for token in ids):
            raise self.refuse(field, f"token ids are whole numbers from 0 to {vocab_size - 1}")
        return tuple(ids)


def is_whole(value: object) -> TypeGuard[int]:
    """True for an int that is no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def _finite(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # an int beyond every float
        return None
    return number if math.isfinite(number) else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
