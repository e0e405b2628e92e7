"""What ranks print, shown by the parent: in rank order, each line prefixed by its rank."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from labkit.ranks.rank_process import RankProcess

# Of one rank in one call; what is more is left out in the middle.
_MAX_LINES = 2000
_MAX_CHARACTERS = 200_000
_MAX_LINE = 5000


def show_output(ranks: Sequence[RankProcess]) -> None:
    """Write what the ranks printed since the last call to this process's stdout, in one piece.

    A stdout that does not take it says so on stderr: the call's result is worth more.
    """
    lines = [
        f"[rank {rank.rank}] {line}\n"
        for rank in ranks
        for line in _lines(rank.new_output().decode(errors="replace"))
    ]
    if lines and sys.stdout is not None:
        try:
            _write("".join(lines))
        except Exception as error:
            with contextlib.suppress(Exception):
                sys.stderr.write(f"what the ranks printed could not be shown: {error!r}\n")


def _write(text: str) -> None:
    """Write to stdout; what its encoding lacks is escaped, as in `\\xe9`."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _lines(text: str) -> list[str]:
    """Lines as a terminal would leave them: what a carriage return overwrote is gone."""
    if not text:
        return []
    lines = text.removesuffix("\n").split("\n")
    return _middle_left_out([_shortened(line.rstrip("\r").rsplit("\r", 1)[-1]) for line in lines])


def _shortened(line: str) -> str:
    if len(line) <= _MAX_LINE:
        return line
    half = _MAX_LINE // 2
    return f"{line[:half]} ... {len(line) - 2 * half} characters not shown ... {line[-half:]}"


def _middle_left_out(lines: list[str]) -> list[str]:
    """As many of the first and of the last lines as may be shown."""
    size = sum(map(len, lines))
    if len(lines) <= _MAX_LINES and size <= _MAX_CHARACTERS:
        return lines
    first = _num_fitting(lines)
    last = _num_fitting(lines[first:][::-1])
    left_out = f"... {len(lines) - first - last} lines not shown ..."
    return [*lines[:first], left_out, *lines[len(lines) - last :]]


def _num_fitting(lines: list[str]) -> int:
    """How many lines from the start fit into half of what may be shown."""
    room = _MAX_CHARACTERS // 2
    for number, line in enumerate(lines[: _MAX_LINES // 2]):
        room -= len(line)
        if room < 0:
            return number
    return min(len(lines), _MAX_LINES // 2)
