"""One matrix, one width, one degree: does a border cut through heads or quantisation groups?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from labkit.plan.cut_features import CutHeads, CutWidth, Unit
from labkit.plan.shard import (
    HeadPartition,
    PartitionError,
    cuts_a_group,
    deals_whole_groups,
    even_range,
    pad_to_whole_groups,
    partition_heads,
)

_SMALLEST_GROUP = 16
"""Quantisation groups below this are advised to nobody: no format in use has them."""


@dataclass(frozen=True)
class BrokenRule:
    """A rule broken at one degree, with the advice that does not depend on other degrees."""

    text: str
    rule: str
    padding: str = ""
    advice: tuple[str, ...] = ()
    note: str = ""

    def fix(self, other_degree: str) -> str:
        """All that would be legal instead."""
        ways = "; or ".join(filter(None, (self.padding, other_degree, *self.advice)))
        return "; ".join(filter(None, (ways, self.note)))


def cut_heads(heads: CutHeads, tp: int) -> Iterable[BrokenRule]:
    """What a matrix made of heads forbids at that degree, if its heads divide."""
    if heads.part != "attention":
        count = heads.count
        found = clauses(lambda: even_range(count, tp, 0, f"the number of {heads.part} heads"))
        if found and not (heads.is_kv and not clauses(lambda: even_range(tp, count, 0))):
            yield from (
                BrokenRule(text, "heads", note="padding cannot add heads") for text in found
            )
            return
    partition = HeadPartition(heads.count, heads.kv_count, tp)
    owned = [
        partition.kv_heads(rank) if heads.is_kv else partition.q_heads(rank) for rank in range(tp)
    ]
    total = heads.kv_count if heads.is_kv else heads.count
    borders = {
        border * heads.per_head
        for some in owned
        for border in (some.start, some.stop)
        if border < total
    }
    for unit in heads.units:
        if cuts_a_group(borders, unit.size):
            widths = sorted({len(some) * heads.per_head for some in owned}, reverse=True)
            shown = " or ".join(str(width) for width in widths)
            text = (
                f"{unit.matrix} ({total} heads x {heads.per_head}) over TP {tp} is {shown} a rank, "
                f"no multiple of its {unit.title}"
            )
            note = "padding cannot help, for heads stay whole"
            yield BrokenRule(
                text, "quantisation groups", advice=_requantised([unit], widths), note=note
            )


def cut_width(width: CutWidth, ranks: int, over: str) -> Iterable[BrokenRule]:
    """What a width forbids over `ranks`; `over` names them."""
    if ranks == 1:
        return
    sizes = [unit.size for unit in width.units]
    whole = math.lcm(*sizes) if sizes else 1
    if width.is_dealt_whole and deals_whole_groups(width.size, ranks, whole):
        return
    padded = pad_to_whole_groups(width.size, ranks, whole)
    padding = ""
    if width.is_paddable:
        padding = (
            f"pad the {width.label} to {padded} with {padded - width.size} zero channels, "
            "which leaves the outputs unchanged"
        )
    whole_experts = ("whole experts on each rank: EP = TP x DP",) if width.is_expert else ()
    uneven = clauses(lambda: even_range(width.size, ranks, 0, width.label, over))
    for text in uneven:
        yield BrokenRule(text, "columns", padding, whole_experts)
    if uneven:
        return
    each = len(even_range(width.size, ranks, 0))
    units = [unit for unit in width.units if cuts_a_group((each,), unit.size)]
    if units:
        names: dict[str, list[str]] = {}
        for unit in units:
            names.setdefault(unit.title, []).append(unit.matrix)
        shown = " or the ".join(f"{title} of {', '.join(some)}" for title, some in names.items())
        text = (
            f"{width.label} {width.size} over {over} is {each} a rank, no multiple of the {shown}"
        )
        advice = (*_requantised(units, [each]), *whole_experts)
        yield BrokenRule(text, "quantisation groups", padding, advice)


def _requantised(units: Iterable[Unit], widths: Iterable[int]) -> tuple[str, ...]:
    every = list(units)
    if not all(unit.is_group for unit in every):
        is_packed = any("word" in unit.title for unit in every)
        return () if is_packed else ("store one scale for each channel instead of blocks",)
    size = math.gcd(*(unit.size for unit in every), *widths)
    names = ", ".join(dict.fromkeys(unit.matrix for unit in every))
    return (f"quantise {names} again in groups of {size}",) if size >= _SMALLEST_GROUP else ()


def uncut_heads(count: int, kv_count: int, tp: int, uneven: bool) -> tuple[str, ...]:
    """Why query and KV heads cannot be dealt over `tp` ranks."""
    return clauses(lambda: partition_heads(count, kv_count, tp, allow_uneven_heads=uneven))


def clauses(partition: Callable[[], object]) -> tuple[str, ...]:
    """The reasons of the PartitionError that a division raises; none if it raises none."""
    try:
        partition()
    except PartitionError as error:
        return error.reasons
    return ()
