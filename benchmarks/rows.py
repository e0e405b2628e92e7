"""What one contestant did: seconds per step in every round, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Agreement:
    """How a side's greedy tokens compare with the reference's for the same prompts."""

    agreeing: int
    prompts: int
    first_divergence: int | None
    """Smallest index of a new token that differs; None if none does."""

    @classmethod
    def of(cls, tokens: Sequence[Sequence[int]], reference: Sequence[Sequence[int]]) -> Agreement:
        """Compare the new tokens of each prompt."""
        divergences = [
            next((i for i, (a, b) in enumerate(zip_longest(mine, theirs)) if a != b), None)
            for mine, theirs in zip(tokens, reference, strict=True)
        ]
        differing = [index for index in divergences if index is not None]
        return cls(
            agreeing=len(divergences) - len(differing),
            prompts=len(divergences),
            first_divergence=min(differing, default=None),
        )


@dataclass(frozen=True)
class Row:
    """One side at one dtype, batch size and thread count."""

    side: str
    ranks: int
    threads: int
    dtype: str
    batch: int
    seconds_per_step: tuple[float, ...] = ()
    """One per round; empty if the side failed."""
    settings: str = ""
    agreement: Agreement | None = None
    error: str = ""

    @property
    def tokens_per_second(self) -> float | None:
        """Median over the rounds, all sequences together."""
        if not self.seconds_per_step:
            return None
        return self.batch / median(self.seconds_per_step)

    @property
    def spread(self) -> tuple[float, float] | None:
        """Lowest and highest tokens per second of any round."""
        if not self.seconds_per_step:
            return None
        return self.batch / max(self.seconds_per_step), self.batch / min(self.seconds_per_step)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, derived figures included."""
        derived = {"tokens_per_second": self.tokens_per_second, "spread": self.spread}
        return asdict(self) | derived


def row_from_dict(fields: dict[str, Any]) -> Row:
    """Inverse of `Row.as_dict`."""
    known = {name: value for name, value in fields.items() if name in Row.__dataclass_fields__}
    agreement = known.get("agreement")
    known["agreement"] = Agreement(**agreement) if agreement else None
    known["seconds_per_step"] = tuple(known["seconds_per_step"])
    return Row(**known)


def find(
    rows: Iterable[Row], side: str, dtype: str, batch: int, *, ranks: int = 1, threads: int = 1
) -> Row | None:
    """The row of one contestant, if it took part."""
    key = (side, dtype, batch, ranks, threads)
    for row in rows:
        if (row.side, row.dtype, row.batch, row.ranks, row.threads) == key:
            return row
    return None


def speedup(row: Row | None, baseline: Row | None) -> float | None:
    """How many times faster `row` is: the median over rounds of the ratio within a round."""
    if row is None or baseline is None:
        return None
    pairs = zip(baseline.seconds_per_step, row.seconds_per_step, strict=False)
    ratios = [theirs / mine for theirs, mine in pairs]
    return median(ratios) if ratios else None
