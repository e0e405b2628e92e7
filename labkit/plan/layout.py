"""A parallel layout, checked against a model before any process starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labkit.plan.decoder import DecoderSpec
from labkit.plan.shard import (
    PartitionError,
    counted,
    partition_columns,
    partition_heads,
    pipeline_ranges,
)


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
    spec: DecoderSpec,
    layout: Layout | None = None,
    *,
    tp: int | None = None,
    allow_uneven_heads: bool = False,
) -> Layout:
    """Return the layout, or refuse it with every reason. Give a `layout` or only a `tp`.

    Raises:
        LayoutError: the model cannot be cut that way; every broken rule is named.
    """
    if layout is not None and tp is not None:
        raise TypeError("give validate() a layout or a tp, not both")
    if layout is None and tp is not None and tp < 1:
        raise _refusal(spec, [f"TP must be at least 1, not {tp}"], allow_uneven_heads)
    layout = layout or Layout(tp=1 if tp is None else tp)
    tp_reasons = _tensor_parallel_reasons(spec, layout.tp, allow_uneven_heads)
    other_reasons = [*_reasons(lambda: pipeline_ranges(spec.num_layers, layout.pp))]
    if layout.ep > 1:
        other_reasons.append(f"EP {layout.ep} needs experts and {spec.model_type} has none")
    if tp_reasons:
        raise _refusal(spec, tp_reasons + other_reasons, allow_uneven_heads)
    if other_reasons:
        raise LayoutError(other_reasons)
    return layout


def legal_tensor_parallel_sizes(
    spec: DecoderSpec, limit: int = 64, allow_uneven_heads: bool = False
) -> tuple[int, ...]:
    """The TP degrees up to `limit` that `validate` accepts, rising. The vocabulary is padded."""
    return tuple(
        tp
        for tp in range(1, limit + 1)
        if not _tensor_parallel_reasons(spec, tp, allow_uneven_heads)
    )


def _tensor_parallel_reasons(spec: DecoderSpec, tp: int, allow_uneven_heads: bool) -> list[str]:
    return [
        *_reasons(
            lambda: partition_heads(
                spec.num_heads, spec.num_kv_heads, tp, allow_uneven_heads=allow_uneven_heads
            )
        ),
        *_reasons(lambda: partition_columns(spec.intermediate_size, tp, "MLP")),
    ]


def _reasons(partition: Callable[[], object]) -> tuple[str, ...]:
    try:
        partition()
    except PartitionError as error:
        return error.reasons
    return ()


def _refusal(spec: DecoderSpec, reasons: list[str], allow_uneven_heads: bool) -> LayoutError:
    facts = [
        counted(spec.num_heads, "attention head"),
        counted(spec.num_kv_heads, "KV head"),
        f"MLP {spec.intermediate_size}",
    ]
    unsaid = [fact for fact in facts if not any(fact in reason for reason in reasons)]
    legal = legal_tensor_parallel_sizes(spec, allow_uneven_heads=allow_uneven_heads)
    return LayoutError(reasons, legal, ", ".join(unsaid))
