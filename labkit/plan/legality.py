"""Whether a model can be laid out like that: every reason why not, and what would fix it.

    legality = check(model, Layout(tp=8))
    legality.is_legal, legality.legal_tp
    for reason in legality.reasons:
        print(reason.text, "->", reason.fix)

Unlike `labkit.plan.layout.validate` it never raises for a layout that a model cannot take.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from labkit.plan.cutting_rules import MOST_TP, Reason, cutting_rules, nearest
from labkit.plan.decoder import DecoderSpec
from labkit.plan.hardware import require_count
from labkit.plan.layout import Layout, broken_rules
from labkit.plan.model import ModelSpec
from labkit.plan.shard import (
    PartitionError,
    counted,
    even_range,
    pad_to_whole_groups,
    pad_vocab,
    pipeline_ranges,
)

__all__ = ["Legality", "Reason", "check"]


@dataclass(frozen=True)
class Legality:
    """The answer of `check`.

    Attributes:
        reasons: each rule that the layout breaks; none if it is legal.
        padding: what has to be padded first, where `allow_padding` let that pass.
    """

    reasons: tuple[Reason, ...]
    padding: tuple[Reason, ...] = ()
    _spec: DecoderSpec | ModelSpec | None = field(default=None, repr=False, compare=False)
    _layout: Layout = field(default_factory=Layout, repr=False, compare=False)
    _uneven: bool = field(default=False, repr=False, compare=False)
    _lora_rank: int | None = field(default=None, repr=False, compare=False)

    @property
    def is_legal(self) -> bool:
        """Whether the model can take the layout, padded as `padding` says."""
        return not self.reasons

    @property
    def is_fixable_by_padding(self) -> bool:
        """Whether padding mends every reason there is."""
        return all(reason.is_fixable_by_padding for reason in self.reasons)

    @property
    def legal_tp(self) -> tuple[int, ...]:
        """TP degrees up to 64 that are legal beside the layout's DP and EP, without padding."""
        if self._spec is None:
            return ()
        layout, rules = self._layout, cutting_rules(self._spec)
        return rules.legal_tp(MOST_TP, self._uneven, layout.dp, layout.ep)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the layout changes although it is legal: padded rows, copies, uneven stages."""
        return () if self._spec is None else tuple(self._notes(self._spec))

    def _notes(self, spec: DecoderSpec | ModelSpec) -> Iterable[str]:
        layout, features = self._layout, cutting_rules(spec).features
        if layout.tp > 1:
            padded = pad_vocab(features.vocab_size, layout.tp)
            if padded > features.vocab_size:
                more = counted(padded - features.vocab_size, "row")
                yield (
                    f"the vocabulary of {features.vocab_size} is padded to {padded} for "
                    f"TP {layout.tp}: {more} that must never be sampled"
                )
        for _, kv_heads in features.attention:
            if 1 <= kv_heads < layout.tp:
                yield (
                    f"{counted(kv_heads, 'KV head')} on TP {layout.tp}: ranks hold copies, and the "
                    f"KV cache of a rank is no smaller than at TP {kv_heads}"
                )
        if layout.tp > 1 and isinstance(spec, ModelSpec) and spec.is_latent:
            yield f"TP {layout.tp} does not divide the latent KV cache: each rank holds all of it"
        if 1 < layout.pp <= features.num_layers:
            stages = pipeline_ranges(features.num_layers, layout.pp)
            if stages.efficiency < 1:
                yield (
                    f"{features.num_layers} layers on {layout.pp} stages: up to {len(stages[0])} a "
                    f"stage, so stages work {stages.efficiency:.1%} of the time at most"
                )
        for width in features.widths:
            if width.is_dealt_whole and self.is_legal:
                group = max(unit.size for unit in width.units)
                padded = pad_to_whole_groups(width.size, layout.expert_tp, group)
                if padded > width.size:
                    yield (
                        f"{width.label} {width.size} is dealt out in whole groups of {group} as if "
                        f"it were {padded}, the last rank padded: vLLM and SGLang do so on load"
                    )
        if self._lora_rank is not None and layout.tp > 1:
            yield (
                f"a LoRA of rank {self._lora_rank} is not cut along its rank: column-parallel "
                "layers copy A and cut B, row-parallel layers cut A and copy B"
            )


def check(
    model: DecoderSpec | ModelSpec,
    layout: Layout,
    *,
    lora_rank: int | None = None,
    fully_sharded_lora: bool = False,
    num_redundant_experts: int = 0,
    allow_uneven_heads: bool = False,
    allow_padding: bool = False,
) -> Legality:
    """Whether the model can take the layout.

    Args:
        lora_rank: of adapters served besides. Its rank is cut only if `fully_sharded_lora`
            (vLLM's `--fully-sharded-loras`), and must divide by TP then.
        num_redundant_experts: copies of experts in all, dealt out with them.
        allow_uneven_heads: ranks may hold different numbers of whole groups of heads.
        allow_padding: what zero channels mend is not a reason; `padding` lists it.

    Raises ValueError for a LoRA rank or a number of copies that is not a whole number.
    """
    if num_redundant_experts:
        require_count("num_redundant_experts", num_redundant_experts)
    mended, others = broken_rules(
        cutting_rules(model), layout, allow_uneven_heads, num_redundant_experts
    )
    reasons = mended + others
    if lora_rank is not None:
        require_count("lora_rank", lora_rank)
        if fully_sharded_lora:
            reasons += _uncut_rank(lora_rank, layout.tp)
    padding = [reason for reason in reasons if allow_padding and reason.is_fixable_by_padding]
    if padding:
        reasons = [reason for reason in reasons if not reason.is_fixable_by_padding]
    rank = None if fully_sharded_lora else lora_rank
    return Legality(tuple(reasons), tuple(padding), model, layout, allow_uneven_heads, rank)


def _uncut_rank(lora_rank: int, tp: int) -> list[Reason]:
    try:
        even_range(lora_rank, tp, 0, "LoRA rank")
    except PartitionError as error:
        fix = f"{nearest('TP', error.legal, tp)}; or leave the rank whole (not fully sharded)"
        return [Reason(text, fix, "LoRA rank") for text in error.reasons]
    return []
