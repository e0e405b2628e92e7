"""What flight records say about groups: which one it is, and who exchanges how many rows in it."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from labkit.ranks import flight_memory as memory

WORD = (1 << 64) - 1


class FlightGroup:
    """A group of ranks as its records name it; made by `FlightRecorder.group`.

    Attributes:
        label: its name, with a number from the second group of that name and ranks in a call on.
        key: the same on all ranks of the group, and of no other group.
        members: bit r is set when world rank r belongs to it; 0: not known.
    """

    def __init__(self, name: str, ranks: tuple[int, ...] | None, number: int, label: str) -> None:
        plan = repr((name, ranks, number)).encode()
        self.key = int.from_bytes(blake2b(plan, digest_size=8).digest(), "little")
        self.label = (
            label
            if len(label.encode()) <= memory.MAX_NAME
            else f"{label[: memory.MAX_NAME // 4]}..."
        )
        self.members = (
            (1 << memory.MAX_MEMBERS) - 1 if ranks is None else sum(1 << r for r in ranks)
        )
        if self.members >> memory.MAX_MEMBERS:
            self.members = 0


class Splits(NamedTuple):
    """Rows that one rank of a group sends to each rank and gets from each, in an `all_to_all`."""

    rank: int
    sent: tuple[int, ...]
    came: tuple[int, ...]

    def balance(self) -> int:
        """A number whose sum over the ranks is 0 (modulo 2^64) when all their splits match.

        Rows sent count up, rows got count down. Hashes of tuples of integers are the same in every
        process.
        """
        out = sum(hash((self.rank, other, n)) for other, n in enumerate(self.sent))
        back = sum(hash((other, self.rank, n)) for other, n in enumerate(self.came))
        return (out - back) & WORD
