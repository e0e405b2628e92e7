"""A parallel layout, checked against a model before any process starts."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.plan.cutting_rules import MOST_TP, CuttingRules, Reason, cutting_rules
from labkit.plan.decoder import DecoderSpec
from labkit.plan.model import ModelSpec
from labkit.plan.shard import PartitionError


class LayoutError(PartitionError):
    """A layout a model cannot take; `reasons` has all of them.

    `legal` lists the TP degrees that would work; it is empty when TP is not at fault.
    """


@dataclass(frozen=True)
class Layout:
    """The degree of each parallel axis, as vLLM and SGLang count them.

    Attributes:
        tp: ranks that cut attention and dense layers.
        pp: pipeline stages.
        dp: copies of attention that share one set of experts; each serves its own requests.
        ep: ranks the experts are dealt over, within the tp * dp of a stage.
        replicas: independent copies of all that.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    replicas: int = 1

    def __post_init__(self) -> None:
        axes = {"TP": self.tp, "PP": self.pp, "DP": self.dp, "EP": self.ep}
        axes["the number of replicas"] = self.replicas
        wrong = [
            f"{axis} must be a whole number, not {size!r}"
            for axis, size in axes.items()
            if isinstance(size, bool) or not isinstance(size, int)
        ]
        wrong = wrong or [
            f"{axis} must be at least 1, not {size}" for axis, size in axes.items() if size < 1
        ]
        if not wrong and self.stage_size % self.ep:
            wrong = [
                f"EP {self.ep} does not divide the TP {self.tp} x DP {self.dp} = "
                f"{self.stage_size} ranks of a stage"
            ]
        if wrong:
            raise PartitionError(wrong)

    @property
    def stage_size(self) -> int:
        """Ranks of one pipeline stage."""
        return self.tp * self.dp

    @property
    def expert_tp(self) -> int:
        """Ranks that cut one expert: those of a stage that EP leaves over."""
        return self.stage_size // self.ep

    @property
    def replica_size(self) -> int:
        """Ranks of one replica."""
        return self.pp * self.stage_size

    @property
    def world_size(self) -> int:
        """All ranks."""
        return self.replicas * self.replica_size


def validate(
    spec: DecoderSpec | ModelSpec,
    layout: Layout | None = None,
    *,
    tp: int | None = None,
    allow_uneven_heads: bool = False,
) -> Layout:
    """Return the layout, or refuse it with every reason. Give a `layout` or only a `tp`.

    `labkit.plan.legality.check` answers the same with what would fix each reason.

    Raises:
        LayoutError: the model cannot be cut that way; every broken rule is named.
    """
    if layout is not None and tp is not None:
        raise TypeError("give validate() a layout or a tp, not both")
    rules = cutting_rules(spec)
    if layout is None and tp is not None and tp < 1:
        raise _refusal(rules, [f"TP must be at least 1, not {tp}"], Layout(), allow_uneven_heads)
    layout = layout or Layout(tp=1 if tp is None else tp)
    broken = broken_rules(rules, layout, allow_uneven_heads)
    tp_reasons, other_reasons = ([reason.text for reason in some] for some in broken)
    if tp_reasons:
        raise _refusal(rules, tp_reasons + other_reasons, layout, allow_uneven_heads)
    if other_reasons:
        raise LayoutError(other_reasons)
    return layout


def broken_rules(
    rules: CuttingRules, layout: Layout, allow_uneven_heads: bool = False, redundant: int = 0
) -> tuple[list[Reason], list[Reason]]:
    """What a layout breaks: rules that another TP would mend, and all others."""
    mended = rules.tensor_parallel(layout.tp, allow_uneven_heads, layout.dp, layout.ep)
    others = [*rules.stages(layout.pp), *rules.experts(layout.ep, redundant)]
    if layout.dp > 1 and not rules.features.experts:
        others.append(
            Reason(
                f"DP {layout.dp} copies attention around shared experts "
                f"and {rules.features.model_type} has none",
                f"use {layout.dp} times as many replicas",
                "attention copies",
            )
        )
    return list(mended), others


def legal_tensor_parallel_sizes(
    spec: DecoderSpec | ModelSpec, limit: int = MOST_TP, allow_uneven_heads: bool = False
) -> tuple[int, ...]:
    """The TP degrees up to `limit` that `validate` accepts, rising. The vocabulary is padded."""
    return cutting_rules(spec).legal_tp(limit, allow_uneven_heads)


def _refusal(
    rules: CuttingRules, reasons: list[str], layout: Layout, allow_uneven_heads: bool
) -> LayoutError:
    unsaid = [fact for fact in rules.facts if not any(fact in reason for reason in reasons)]
    legal = rules.legal_tp(MOST_TP, allow_uneven_heads, layout.dp, layout.ep)
    return LayoutError(reasons, legal, ", ".join(unsaid))
