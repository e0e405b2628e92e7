"""How the grader asks a kernel for functions, and what it gets: an order as a cell, JSON in a file.

Both ends are here: the grader's `kernel_session` and the kernel's `collecting_kernel`.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass

_TAKE = "# labkit takes functions: "


@dataclass(frozen=True)
class Order:
    """names: of the functions wanted. file: where to. only_new: what changed since last time."""

    names: tuple[str, ...]
    file: str
    only_new: bool

    def as_code(self) -> str:
        """The order as a cell that no notebook holds by chance."""
        return _TAKE + json.dumps(asdict(self))


def order_in(code: str) -> Order | None:
    """The order that a cell is; None when it is one of the notebook's."""
    if not code.startswith(_TAKE):
        return None
    fields = json.loads(code[len(_TAKE) :])
    return Order(tuple(fields["names"]), fields["file"], fields["only_new"])


@dataclass(frozen=True)
class Taken:
    """A function as bytes, or the key and the text of why it is none.

    is_checked: it is what `check` was given, as it was then; otherwise what its name stands for.
    """

    packed: bytes = b""
    key: str = ""
    text: str = ""
    is_checked: bool = False


def as_json(taken: dict[str, Taken]) -> str:
    """What a kernel hands over, by function."""
    entries = {
        name: asdict(one) | {"packed": base64.b64encode(one.packed).decode()}
        for name, one in taken.items()
    }
    return json.dumps(entries)


def from_json(text: bytes) -> dict[str, Taken]:
    """The reverse of `as_json`; ValueError, KeyError, TypeError or AttributeError if it is not."""
    return {
        str(name): Taken(
            base64.b64decode(entry["packed"]),
            str(entry["key"]),
            str(entry["text"]),
            bool(entry["is_checked"]),
        )
        for name, entry in json.loads(text).items()
    }
