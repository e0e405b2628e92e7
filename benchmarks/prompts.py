"""The prompts of the decode benchmark: windows of one short text."""

from __future__ import annotations

from pathlib import Path

from labkit.models.checkpoint import open_checkpoint

TEXT = """\
The harbour was quiet when the first boat came in. Two women carried the nets up the steps and
laid them out to dry, and a boy counted the fish into wooden boxes. Nobody spoke much before the
sun was over the hill. Then the baker opened her door, the smell of bread filled the street, and
the whole village seemed to wake at once. Children ran down to the water to see what the night had
brought. An old man on the wall told anyone who would listen that the weather was about to change,
as he had told them every morning for twenty years, and now and then, of course, he was right.
By noon the boxes were gone, the boats were clean, and the harbour was quiet again."""


def prompts(model: Path, length: int, count: int) -> list[list[int]]:
    """`count` windows of TEXT, each `length` tokens long and starting 3 tokens after the last."""
    ids = open_checkpoint(model).load_tokenizer().encode(TEXT)
    if len(ids) < length + 3 * (count - 1):
        raise ValueError(f"the text has {len(ids)} tokens, too few for {count} prompts")
    return [list(ids[3 * i : 3 * i + length]) for i in range(count)]
