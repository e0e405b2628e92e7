"""Text <-> token ids, over the `tokenizers` package; streamed text never splits a character."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer as _Backend

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"


class Tokenizer:
    """What a `tokenizer.json` describes."""

    def __init__(self, backend: _Backend) -> None:
        self._backend = backend

    @classmethod
    def from_file(cls, path: str | Path) -> Tokenizer:
        """From a `tokenizer.json`. Raises FileNotFoundError or ValueError naming the file."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no tokenizer at {path}")
        try:
            return cls(_Backend.from_file(str(path)))
        except Exception as error:
            raise ValueError(f"{path} is not a readable tokenizer.json: {error}") from error

    @classmethod
    def from_json(cls, text: str) -> Tokenizer:
        """From the text of a `tokenizer.json`."""
        return cls(_Backend.from_str(text))

    @classmethod
    def from_directory(cls, directory: str | Path) -> Tokenizer:
        """From `tokenizer.json` in a model directory."""
        return cls.from_file(Path(directory) / "tokenizer.json")

    @property
    def vocab_size(self) -> int:
        """Ids run from 0 to `vocab_size - 1`, added tokens included."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Ids of a text. Special tokens written out in the text become their one id."""
        return self._backend.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Text of a sequence of ids."""
        return self._backend.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def token_id(self, token: str) -> int | None:
        """Id of one token by its exact name, such as `<|im_end|>`."""
        return self._backend.token_to_id(token)

    def token(self, token_id: int) -> str | None:
        """Name of one token by its id."""
        return self._backend.id_to_token(token_id)

    def stream(self, *, skip_special_tokens: bool = True) -> TextStream:
        """A decoder for ids that arrive one at a time."""
        return TextStream(self, skip_special_tokens=skip_special_tokens)


class TextStream:
    """Ids in, text out, as soon as whole characters are known.

    A byte-level token may end inside a character: such bytes wait for the next id. Two marks into
    the ids are enough, because what a token decodes to depends at most on what was just before it.
    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special_tokens: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip = skip_special_tokens
        self._ids: list[int] = []
        self._context = 0  # where decoding starts
        self._emitted = 0  # ids whose text is out

    def push(self, ids: int | Iterable[int]) -> str:
        """Add one or more ids; returns the text that became final, perhaps none."""
        return "".join(map(self._push_one, [ids] if isinstance(ids, int) else ids))

    def _push_one(self, token_id: int) -> str:
        self._ids.append(token_id)
        before, after = self._texts()
        if after.endswith(_INCOMPLETE) or len(after) <= len(before):
            return ""
        self._context, self._emitted = self._emitted, len(self._ids)
        return after[len(before) :]

    def flush(self) -> str:
        """The text still waiting when no more ids will come; a cut character shows as U+FFFD."""
        before, after = self._texts()
        self._context = self._emitted = len(self._ids)
        return after[len(before) :]

    def _texts(self) -> tuple[str, str]:
        def decode(ids: list[int]) -> str:
            return self._tokenizer.decode(ids, skip_special_tokens=self._skip)

        return (
            decode(self._ids[self._context : self._emitted]),
            decode(self._ids[self._context :]),
        )
