"""What the shard explorer says about one model at one tensor parallel size, in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from course.labels import Label, quantity
from labkit.plan.holdings import Holdings, RankHoldings, holdings, nearest_legal_sizes
from labkit.plan.layout import LayoutError, legal_tensor_parallel_sizes
from labkit.plan.presets import Preset
from labkit.plan.shard import counted

BYTES_PER_ELEMENT = 2
"""Weights and cache in 16 bits: the explorer's assumption, which its page names."""

SIZES = range(1, 17)
"""The tensor parallel sizes that the explorer offers."""


@dataclass(frozen=True)
class Outcome:
    """The answer to one choice of model and size."""

    tp: int
    headline: str
    sentences: tuple[str, ...]
    reasons: tuple[str, ...]
    """Every broken rule; empty where the size is legal."""
    nearest: tuple[int, ...]
    """The legal sizes on both sides of a refused one."""
    held: Holdings | None
    """What the ranks hold; None where the size is refused."""

    @property
    def nearest_in_words(self) -> tuple[str, ...]:
        """A sentence with the nearest legal sizes, for a page without buttons; or none."""
        named = " and TP ".join(map(str, self.nearest))
        return (f"Nearest legal: TP {named}.",) if named else ()


@lru_cache(maxsize=512)
def outcome(preset: Preset, tp: int, *, allow_uneven_heads: bool = False) -> Outcome:
    """What `tp` ranks hold of a model, or every reason why it does not divide over them."""
    try:
        held = holdings(
            preset.spec,
            tp,
            bytes_per_element=BYTES_PER_ELEMENT,
            allow_uneven_heads=allow_uneven_heads,
        )
    except LayoutError as refused:
        return _refusal(preset, tp, refused.reasons, allow_uneven_heads)
    headline = f"{preset.title} over {counted(tp, 'rank')}: legal."
    sentences = (*_shares(held), *_kv_replicas(held), *_norms(held), *_padding(held))
    return Outcome(tp, headline, sentences, (), (), held)


@lru_cache(maxsize=64)
def legal_sizes(preset: Preset, *, allow_uneven_heads: bool = False) -> tuple[int, ...]:
    """The sizes among those offered that the model divides over."""
    return legal_tensor_parallel_sizes(preset.spec, SIZES[-1], allow_uneven_heads)


def origin(preset: Preset) -> str:
    """Where the explorer's numbers come from, with their labels."""
    return (
        f"{Label.MODELLED.symbol} {Label.MODELLED}: counted from the model's published shape "
        f"({preset.source}). {Label.ASSUMED.symbol} {Label.ASSUMED}: "
        f"{8 * BYTES_PER_ELEMENT} bits for each weight and each cached number."
    )


def _refusal(
    preset: Preset, tp: int, reasons: tuple[str, ...], allow_uneven_heads: bool
) -> Outcome:
    nearest = nearest_legal_sizes(preset.spec, tp, allow_uneven_heads=allow_uneven_heads)
    sentences = []
    if not allow_uneven_heads:
        other_way = outcome(preset, tp, allow_uneven_heads=True)
        if other_way.held is not None:
            heads = _q_heads(other_way.held)
            sentences.append(f"With uneven heads allowed, ranks would hold {heads} query heads.")
    headline = f"{preset.title} over {counted(tp, 'rank')}: refused."
    return Outcome(tp, headline, tuple(sentences), reasons, nearest, None)


def _shares(held: Holdings) -> list[str]:
    spec, largest = held.spec, _largest(held)
    weights = size_of(largest.total_bytes)
    whole = size_of(BYTES_PER_ELEMENT * spec.num_parameters)
    if held.tp == 1:
        return [f"The one rank holds all {weights} of weights; nothing is sent."]
    parts = ", ".join(f"{part} {size_of(n)}" for part, n in largest.weight_bytes.items())
    who = "Each rank" if _is_even(held) else f"The fullest rank ({largest.rank})"
    lines = [
        f"{who} holds {len(largest.q_heads)} of {counted(spec.num_heads, 'query head')}, "
        f"{len(largest.kv_heads)} of {counted(spec.num_kv_heads, 'KV head')}, "
        f"{len(largest.mlp_columns):,} of {spec.intermediate_size:,} MLP columns and "
        f"{len(largest.vocab_rows):,} of {spec.vocab_size + held.padded_rows:,} vocabulary rows.",
        f"That is {weights} of weights ({parts}); the whole model has {whole}.",
    ]
    if not _is_even(held):
        lines.append(f"Ranks hold {_q_heads(held)} query heads: the busiest makes the others wait.")
    return lines


def _kv_replicas(held: Holdings) -> list[str]:
    spec, copies = held.spec, held.num_kv_head_replicas
    if held.tp == 1:
        return []
    if copies == 1:
        return ["Each KV head lives on one rank: no keys or values are held twice."]
    return [
        f"There are more ranks than KV heads, so each KV head lives on {copies} ranks.",
        f"One more copy of a KV head costs {size_of(held.kv_head_weight_bytes)} of weights (its "
        f"rows of the key and value projections in {spec.num_layers} layers) and "
        f"{size_of(held.kv_head_bytes_per_token)} of KV cache for every token.",
        f"The {held.extra_kv_heads} extra copies here make "
        f"{size_of(held.replicated['KV heads'])} and {size_of(held.extra_kv_bytes_per_token)} a "
        f"token; a rank's own KV cache is as large as at TP {spec.num_kv_heads}.",
    ]


def _norms(held: Holdings) -> list[str]:
    if held.tp == 1:
        return []
    each = held.ranks[0].weight_bytes["norms"]
    return [
        f"Norms (two a layer, one at the end) are not cut: every rank keeps all of them, "
        f"{size_of(each)}, so {size_of(held.replicated['norms'])} are held again in all."
    ]


def _padding(held: Holdings) -> list[str]:
    rows = f"{held.spec.vocab_size:,} rows"
    if held.tp == 1 and not held.padded_rows:
        return []
    if not held.padded_rows:
        return [f"The vocabulary's {rows} divide as they are: no padding."]
    last = held.ranks[-1].rank
    return [
        f"The vocabulary's {rows} are padded with {held.padded_rows:,} rows of zeros to divide: "
        f"{size_of(held.padded_bytes)}, at the end of rank {last}."
    ]


def size_of(num_bytes: float) -> str:
    """Bytes in the largest fitting binary unit."""
    return quantity(num_bytes, "B", short=True)


def _largest(held: Holdings) -> RankHoldings:
    return max(held.ranks, key=lambda rank: rank.total_bytes)


def _q_heads(held: Holdings) -> str:
    *others, last = (str(len(rank.q_heads)) for rank in held.ranks)
    return f"{', '.join(others)} and {last}"


def _is_even(held: Holdings) -> bool:
    return len({len(rank.q_heads) for rank in held.ranks}) == 1
