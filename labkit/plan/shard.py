"""The partition arithmetic: which rank holds which heads, columns, vocabulary rows and layers.

Every rule of division is written here once. Layers, loaders and planners ask; none of them
divides by the tensor parallel degree itself. A rule that cannot hold raises `PartitionError`
with every reason and the degrees that would work. Standard library only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from labkit.plan.division import (
    PartitionError,
    balanced_range,
    balanced_ranges,
    counted,
    cuts_a_group,
    deals_whole_groups,
    divisors,
    even_range,
    pad_to_whole_groups,
    pad_up,
    partition_columns,
    require_degree,
    require_rank,
)

__all__ = [
    "HeadPartition",
    "PaddingRule",
    "PartitionError",
    "PipelineStages",
    "Remainder",
    "VocabPartition",
    "balanced_range",
    "balanced_ranges",
    "counted",
    "cuts_a_group",
    "deals_whole_groups",
    "divisors",
    "even_range",
    "pad_to_whole_groups",
    "pad_up",
    "pad_vocab",
    "partition_columns",
    "partition_experts",
    "partition_heads",
    "partition_vocab",
    "pipeline_ranges",
    "vocab_moves",
]

PaddingRule = Literal["lcm", "product"]
Remainder = Literal["first", "middle", "last", "spread"]


def partition_experts(num_experts: int, ep: int, redundant: int = 0) -> int:
    """Experts of each of `ep` ranks; `redundant` copies are dealt out with the experts.

    Raises:
        PartitionError: with every broken rule and the legal degrees.
    """
    require_degree(ep, "EP")
    copies = num_experts + redundant
    shown = counted(num_experts, "expert")
    if redundant:
        shown += f" and {redundant} redundant {'copy' if redundant == 1 else 'copies'}"
    if ep > copies:
        reason = f"EP {ep} leaves {ep - copies} ranks without one of {shown}"
    elif copies % ep:
        reason = f"{shown} do not divide over EP {ep}"
    else:
        return copies // ep
    raise PartitionError([reason], divisors(copies))


class PipelineStages(tuple[range, ...]):
    """The layers of each pipeline stage, in order."""

    __slots__ = ()

    @property
    def efficiency(self) -> float:
        """Share of a full pipeline's time that its stages work: the longest sets the pace."""
        lengths = [len(layers) for layers in self]
        return sum(lengths) / (len(lengths) * max(lengths))


def pipeline_ranges(num_layers: int, pp: int, remainder: Remainder = "first") -> PipelineStages:
    """The layers of each pipeline stage; their numbers differ by at most one.

    `remainder`: which stages take one layer more. "middle" spares the ends, which also hold the
    embedding and the LM head; where it cannot be in the very middle it is one stage later.

    Raises:
        PartitionError: a stage would hold no layer.
    """
    require_degree(pp, "PP")
    if pp > num_layers:
        raise PartitionError(
            [f"PP {pp} leaves stages empty; {num_layers} layers take PP 1 to {num_layers}"],
            range(1, num_layers + 1),
        )
    base, longer = divmod(num_layers, pp)
    firsts = {"first": 0, "middle": (pp - longer + 1) // 2, "last": pp - longer}
    if remainder == "spread":
        lengths = [base + (stage + 1) * longer // pp - stage * longer // pp for stage in range(pp)]
    elif remainder in firsts:
        start = firsts[remainder]
        lengths = [base + (start <= stage < start + longer) for stage in range(pp)]
    else:
        known = ", ".join([*firsts, "spread"])
        raise ValueError(f"remainder is {remainder!r}; it must be one of {known}")
    ends = list(accumulate(lengths))
    return PipelineStages(
        range(end - length, end) for length, end in zip(lengths, ends, strict=True)
    )


@dataclass(frozen=True)
class HeadPartition:
    """Attention heads over tensor parallel ranks. Build it with `partition_heads`.

    A rank's query heads are always served by the KV heads the same rank holds. With more ranks
    than KV heads each KV head lives on `num_kv_head_replicas` neighbouring ranks.
    """

    num_heads: int
    num_kv_heads: int
    tp: int

    @property
    def group_size(self) -> int:
        """Query heads that share one KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def num_kv_head_replicas(self) -> int:
        """Ranks that hold a copy of the same KV head; 1 when each has its own."""
        return max(1, self.tp // self.num_kv_heads)

    @property
    def is_even(self) -> bool:
        """Whether all ranks hold the same number of query heads."""
        return self.tp > self.num_kv_heads or self.num_kv_heads % self.tp == 0

    def kv_owner(self, rank: int) -> int:
        """The first KV head that `rank` holds: `rank * kv_heads // tp` unless heads are uneven."""
        return self.kv_heads(rank).start

    def kv_heads(self, rank: int) -> range:
        """The KV heads whose keys and values `rank` computes and caches."""
        if self.tp > self.num_kv_heads:
            require_rank(rank, self.tp)
            owner = rank * self.num_kv_heads // self.tp
            return range(owner, owner + 1)
        return balanced_range(self.num_kv_heads, self.tp, rank)

    def q_heads(self, rank: int) -> range:
        """The query heads of `rank`: the groups of its KV heads, or its share of one group."""
        if self.tp > self.num_kv_heads:
            return even_range(self.num_heads, self.tp, rank, "attention heads")
        kv_heads = self.kv_heads(rank)
        return range(kv_heads.start * self.group_size, kv_heads.stop * self.group_size)


def partition_heads(
    num_heads: int, num_kv_heads: int, tp: int, *, allow_uneven_heads: bool = False
) -> HeadPartition:
    """Divide attention heads over `tp` ranks.

    Strictly, query heads divide by `tp`, and either KV heads divide by `tp` or `tp` is a multiple
    of the KV heads, which are then replicated. With `allow_uneven_heads` ranks may hold different
    numbers of whole KV groups instead (9 heads over 3 KV heads, TP 2: 6 + 3).

    Raises:
        PartitionError: with every broken rule and the legal degrees.
    """
    reasons = _head_reasons(num_heads, num_kv_heads, tp, allow_uneven_heads)
    if reasons:
        legal = [
            degree
            for degree in range(1, max(num_heads, 0) + 1)
            if not _head_reasons(num_heads, num_kv_heads, degree, allow_uneven_heads)
        ]
        raise PartitionError(reasons, legal, counted(num_kv_heads, "KV head"))
    return HeadPartition(num_heads, num_kv_heads, tp)


def _head_reasons(num_heads: int, num_kv_heads: int, tp: int, allow_uneven: bool) -> list[str]:
    if tp < 1:
        return [f"TP must be at least 1, not {tp}"]
    if num_heads < 1 or num_kv_heads < 1 or num_heads % num_kv_heads:
        heads = counted(num_heads, "attention head")
        return [f"{heads} do not share {counted(num_kv_heads, 'KV head')} evenly"]
    if allow_uneven and tp <= num_kv_heads:
        return []
    reasons = []
    if num_heads % tp:
        reasons.append(f"{counted(num_heads, 'attention head')} do not divide over TP {tp}")
    if num_kv_heads % tp and tp % num_kv_heads:
        kv_heads = counted(num_kv_heads, "KV head")
        reasons.append(f"{kv_heads} neither divide over TP {tp} nor replicate evenly on it")
    if tp > num_heads:
        reasons.append(f"TP {tp} leaves {tp - num_heads} ranks without an attention head")
    return reasons


@dataclass(frozen=True)
class VocabPartition:
    """Vocabulary rows over tensor parallel ranks: equal blocks, padding at the very end."""

    vocab_size: int
    padded_size: int
    tp: int

    @property
    def rows_per_rank(self) -> int:
        return self.padded_size // self.tp

    def rows(self, rank: int) -> range:
        """The rows of `rank` in the padded vocabulary."""
        return even_range(self.padded_size, self.tp, rank, "padded vocabulary")

    def real_rows(self, rank: int) -> range:
        """The rows of `rank` that are tokens; empty on a rank that holds only padding."""
        rows = self.rows(rank)
        stop = min(rows.stop, self.vocab_size)
        return range(min(rows.start, stop), stop)

    def owner(self, token_id: int) -> int:
        """The rank whose rows contain `token_id`."""
        if not 0 <= token_id < self.vocab_size:
            raise IndexError(f"token id {token_id} is outside a vocabulary of {self.vocab_size}")
        return token_id // self.rows_per_rank


def pad_vocab(vocab_size: int, tp: int, *, multiple: int = 64, rule: PaddingRule = "lcm") -> int:
    """The number of rows a vocabulary is padded to.

    `"lcm"` is the smallest size divisible by both `multiple` and `tp`. `"product"` divides by
    `multiple * tp`, as Megatron-LM pads, so its checkpoints change size with the degree.
    """
    require_degree(tp, "TP")
    unit = multiple * tp if rule == "product" else math.lcm(multiple, tp)
    return pad_up(vocab_size, unit)


def partition_vocab(
    vocab_size: int, tp: int, *, multiple: int = 64, rule: PaddingRule = "lcm"
) -> VocabPartition:
    """Divide a vocabulary over `tp` ranks after padding it with `pad_vocab`."""
    if vocab_size < 1:
        raise PartitionError([f"a vocabulary needs at least one token, not {vocab_size}"])
    return VocabPartition(vocab_size, pad_vocab(vocab_size, tp, multiple=multiple, rule=rule), tp)


def vocab_moves(old: VocabPartition, new: VocabPartition) -> tuple[tuple[int, int, range], ...]:
    """How the rows of one partition become those of another: `(old rank, new rank, rows)`.

    Rows are token ids. Padding stays behind: its amount belongs to a partition, not to a model.

    Raises:
        PartitionError: the two partitions are of different vocabularies.
    """
    if old.vocab_size != new.vocab_size:
        raise PartitionError(
            [f"vocabularies of {old.vocab_size} and {new.vocab_size} tokens are not the same"]
        )
    moves = []
    for source in range(old.tp):
        for target in range(new.tp):
            held, wanted = old.real_rows(source), new.real_rows(target)
            rows = range(max(held.start, wanted.start), min(held.stop, wanted.stop))
            if rows:
                moves.append((source, target, rows))
    return tuple(moves)
