"""What forbids cutting a model over ranks: heads, columns, quantisation groups, experts, layers.

One set of rules for what we run (`DecoderSpec`) and for what we only size (`ModelSpec`); the
arithmetic is in `labkit.plan.shard`. Findings are kept while the model lives, because a search
asks thousands of times.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from labkit.plan.cut_checks import BrokenRule, clauses, cut_heads, cut_width, uncut_heads
from labkit.plan.cut_features import CutFeatures, cut_features
from labkit.plan.decoder import DecoderSpec
from labkit.plan.model import ModelSpec
from labkit.plan.shard import (
    PartitionError,
    counted,
    even_range,
    pad_up,
    partition_experts,
    pipeline_ranges,
)

MOST_TP = 64
"""The largest tensor parallel degree that advice looks at."""


@dataclass(frozen=True)
class Reason:
    """One rule that a layout breaks.

    Attributes:
        text: what was given and the rule.
        fix: what would be legal instead.
        rule: "heads", "KV heads", "columns", "quantisation groups", "experts", "stages",
            "attention copies" or "LoRA rank".
        is_fixable_by_padding: whether zero channels make it legal and leave the outputs unchanged.
    """

    text: str
    fix: str
    rule: str
    is_fixable_by_padding: bool = False


@dataclass
class CuttingRules:
    """The rules of one model. Get it from `cutting_rules`."""

    features: CutFeatures
    _broken_at: dict[tuple[object, ...], tuple[BrokenRule, ...]] = field(default_factory=dict)
    _legal: dict[tuple[object, ...], tuple[int, ...]] = field(default_factory=dict)
    _reasons: dict[tuple[object, ...], tuple[Reason, ...]] = field(default_factory=dict)

    @property
    def facts(self) -> tuple[str, ...]:
        """The sizes that decide, in words."""
        features = self.features
        heads = [counted(count, "attention head") for count, _ in features.attention]
        kv_heads = [counted(count, "KV head") for _, count in features.attention if count]
        widths = [f"{width.label} {width.size}" for width in features.widths if width.is_paddable]
        return tuple(dict.fromkeys([*heads, *kv_heads, *widths]))

    def tensor_parallel(
        self, tp: int, uneven: bool = False, dp: int = 1, ep: int = 1
    ) -> tuple[Reason, ...]:
        """What forbids cutting attention and dense layers over `tp`, experts over tp * dp / ep."""
        key = ("TP", tp, uneven, dp, ep)
        if key not in self._reasons:
            found = self._broken(tp, uneven, dp, ep)
            other = nearest("TP", self.legal_tp(MOST_TP, uneven, dp, ep), tp) if found else ""
            self._reasons[key] = tuple(
                Reason(broken.text, broken.fix(other), broken.rule, bool(broken.padding))
                for broken in found
            )
        return self._reasons[key]

    def legal_tp(
        self, limit: int = MOST_TP, uneven: bool = False, dp: int = 1, ep: int = 1
    ) -> tuple[int, ...]:
        """The degrees up to `limit` that break no rule beside that DP and EP, rising."""
        key = (limit, uneven, dp, ep)
        if key not in self._legal:
            self._legal[key] = tuple(
                tp for tp in range(1, limit + 1) if not self._broken(tp, uneven, dp, ep)
            )
        return self._legal[key]

    def experts(self, ep: int, redundant: int = 0) -> tuple[Reason, ...]:
        """What forbids dealing the experts and `redundant` copies of some over `ep` ranks."""
        key = ("EP", ep, redundant)
        if key not in self._reasons:
            self._reasons[key] = tuple(self._dealt(ep, redundant))
        return self._reasons[key]

    def stages(self, pp: int) -> tuple[Reason, ...]:
        """What forbids `pp` pipeline stages."""
        layers = self.features.num_layers
        if 1 <= pp <= layers:
            return ()
        found = clauses(lambda: pipeline_ranges(layers, pp))
        return tuple(Reason(text, f"use PP {layers} or less", "stages") for text in found)

    def _broken(self, tp: int, uneven: bool, dp: int, ep: int) -> tuple[BrokenRule, ...]:
        dense = self._once(("dense", tp, uneven), lambda: self._dense(tp, uneven))
        if not self.features.experts:
            return dense
        try:
            cut = len(even_range(tp * dp, ep, 0))
        except PartitionError:
            text = f"EP {ep} does not divide the {tp * dp} ranks of TP {tp} x DP {dp}"
            return (*dense, BrokenRule(text, "experts"))
        return dense + self._once(("experts", cut), lambda: self._of_experts(cut))

    def _once(
        self, key: tuple[object, ...], find: Callable[[], Iterable[BrokenRule]]
    ) -> tuple[BrokenRule, ...]:
        if key not in self._broken_at:
            self._broken_at[key] = tuple({broken.text: broken for broken in find()}.values())
        return self._broken_at[key]

    def _of_experts(self, cut: int) -> Iterable[BrokenRule]:
        for width in self.features.widths:
            if width.is_expert:
                yield from cut_width(width, cut, f"the {cut} ranks that cut an expert")

    def _dense(self, tp: int, uneven: bool) -> Iterable[BrokenRule]:
        uncut: list[str] = []
        for count, kv_count in self.features.attention:
            uncut += uncut_heads(count, kv_count or 1, tp, uneven)
        for text in uncut:
            if "KV head" in text:
                yield BrokenRule(
                    text, "KV heads", note="KV heads divide or are copied, never padded"
                )
            else:
                yield BrokenRule(text, "heads", note="padding cannot add heads")
        for heads in self.features.heads:
            if heads.part != "attention" or not uncut:
                yield from cut_heads(heads, tp)
        for width in self.features.widths:
            if not width.is_expert:
                yield from cut_width(width, tp, f"TP {tp}")

    def _dealt(self, ep: int, redundant: int) -> Iterable[Reason]:
        if not self.features.experts and ep > 1:
            text = f"EP {ep} needs experts and {self.features.model_type} has none"
            yield Reason(text, "use EP 1: TP cuts the MLP", "experts")
        for count in self.features.experts:
            try:
                partition_experts(count, ep, redundant)
            except PartitionError as error:
                copies = pad_up(count, ep) - count
                advice = nearest("EP", error.legal, ep)
                advice += (
                    f"; or {copies} redundant {'copy' if copies == 1 else 'copies'} of experts"
                )
                yield from (Reason(text, advice, "experts") for text in error.reasons)


_KEPT: dict[int, tuple[weakref.ref[DecoderSpec | ModelSpec], CuttingRules]] = {}


def cutting_rules(spec: DecoderSpec | ModelSpec) -> CuttingRules:
    """The rules of a model, kept while it lives."""
    key = id(spec)
    kept = _KEPT.get(key)
    if kept is not None and kept[0]() is spec:
        return kept[1]
    rules = CuttingRules(cut_features(spec))
    _KEPT[key] = (weakref.ref(spec, lambda _: _KEPT.pop(key, None)), rules)
    return rules


def nearest(axis: str, legal: Iterable[int], degree: int) -> str:
    """`use TP 4 or 8`: the legal degrees on both sides of `degree`; "" if there are none."""
    every = sorted(legal)
    below, above = [d for d in every if d < degree], [d for d in every if d > degree]
    chosen = [str(d) for d in (*below[-1:], *above[:1])]
    return f"use {axis} {' or '.join(chosen)}" if chosen else ""
