"""The bars the decode benchmark is held to, and whether a result clears them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bar import Bar
from benchmarks.rows import Row, find, speedup
from benchmarks.sides import DTENSOR, OURS, OURS_GLOO, TRANSFORMERS, TRANSFORMERS_TP

DTYPES = ("float32", "bfloat16")
BATCHES = (1, 8, 32)

ONE_RANK_BAR, ONE_RANK_GOAL = 1.15, 1.5
NEVER_SLOWER_BAR = 1.0
TRANSFORMERS_TP_BAR = 3.0
DTENSOR_BAR = 8.0
TWO_RANKS_BARS = {8: 1.25, 32: 1.3}
"""Batch -> how many times as fast as one rank of one thread."""
TWO_RANKS_GOAL = 1.7
GLOO_BAR = 2.5


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Every bar, in the order they were set."""
    return [bar for dtype in DTYPES for batch in BATCHES for bar in _bars_at(rows, dtype, batch)]


def _bars_at(rows: Sequence[Row], dtype: str, batch: int) -> list[Bar]:
    at = f"{dtype}, batch {batch}"
    bar, goal = (ONE_RANK_BAR, ONE_RANK_GOAL) if batch == 1 else (NEVER_SLOWER_BAR, None)
    found = []
    for threads, title in ((1, "one thread"), (2, "two threads")):
        ours = find(rows, OURS, dtype, batch, threads=threads)
        theirs = find(rows, TRANSFORMERS, dtype, batch, threads=threads)
        name = f"one rank against transformers, {title}, {at}"
        found.append(Bar(name, speedup(ours, theirs), bar, goal))
    two = find(rows, OURS, dtype, batch, ranks=2)
    if batch in TWO_RANKS_BARS:
        one = find(rows, OURS, dtype, batch)
        name = f"two ranks against one rank, {at}"
        found.append(Bar(name, speedup(two, one), TWO_RANKS_BARS[batch], TWO_RANKS_GOAL))
    if batch == 1:
        over_gloo = find(rows, OURS_GLOO, dtype, batch, ranks=2)
        found.append(Bar(f"two ranks against gloo, {at}", speedup(two, over_gloo), GLOO_BAR))
    ours = find(rows, OURS, dtype, batch, ranks=3)
    for peer, peer_bar in ((TRANSFORMERS_TP, TRANSFORMERS_TP_BAR), (DTENSOR, DTENSOR_BAR)):
        theirs = find(rows, peer, dtype, batch, ranks=3)
        name = f"three ranks against {peer}, {at}"
        found.append(Bar(name, speedup(ours, theirs), peer_bar))
    return found
