"""Documents packed end to end into training sequences of one length."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from tokenizers import Tokenizer
from torch import Tensor

from training.tiny.corpus import MIXTURE, document, documents

END_ID = 0


class PackedStream:
    """The documents of a split as one endless row of tokens, each document ended by token 0.

    `position` (documents taken) and `rest` (tokens taken but not yet used) are the whole state.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        split: str,
        seed: int,
        position: int = 0,
        rest: Tensor | None = None,
        mixture: Mapping[str, int] = MIXTURE,
    ) -> None:
        self.tokenizer = tokenizer
        self.source = documents(split, seed, position, mixture)
        self.position = position
        self.rest = torch.empty(0, dtype=torch.long) if rest is None else rest

    def batch(self, sequences: int, length: int) -> Tensor:
        """The next `sequences` rows of `length` + 1 ids: inputs and, one to the right, targets."""
        needed = sequences * (length + 1)
        pieces, have = [self.rest], len(self.rest)
        while have < needed:
            ids = [*self.tokenizer.encode(next(self.source).text).ids, END_ID]
            self.position += 1
            pieces.append(torch.tensor(ids))
            have += len(ids)
        row = torch.cat(pieces)
        self.rest = row[needed:].clone()
        return row[:needed].view(sequences, length + 1)


def domain_batch(
    tokenizer: Tokenizer,
    domain: str,
    seed: int,
    sequences: int,
    length: int,
    split: str = "held-out",
) -> Tensor:
    """Like `PackedStream.batch`, from one domain's documents 0, 1, 2, ... of a split."""
    needed, index = sequences * (length + 1), 0
    ids: list[int] = []
    while len(ids) < needed:
        ids += [*tokenizer.encode(document(domain, index, split, seed).text).ids, END_ID]
        index += 1
    return torch.tensor(ids[:needed]).view(sequences, length + 1)
