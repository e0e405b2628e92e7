"""What ranks print, shown by the parent: in rank order, each line prefixed by its rank."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from labkit.ranks.rank_process import RankProcess

_MAX_LINES = 2000  # per rank and call


def show_output(ranks: Sequence[RankProcess]) -> None:
    """Write what the ranks printed since the last call to this process's stdout, in one piece."""
    lines = [
        f"[rank {rank.rank}] {line}\n"
        for rank in ranks
        for line in _lines(rank.new_output().decode(errors="replace"))
    ]
    if lines:
        sys.stdout.write("".join(lines))
        sys.stdout.flush()


def _lines(text: str) -> list[str]:
    """Lines as a terminal would leave them: what a carriage return overwrote is gone."""
    if not text:
        return []
    lines = text.removesuffix("\n").split("\n")
    if len(lines) > _MAX_LINES:
        half = _MAX_LINES // 2
        left_out = f"... {len(lines) - 2 * half} lines not shown ..."
        lines = [*lines[:half], left_out, *lines[-half:]]
    return [line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines]
