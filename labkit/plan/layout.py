"""A parallel layout, checked against a model before any process starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labkit.plan.model import ModelSpec
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
    """The degree of each parallel axis; `world_size` is their product."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        axes = {"TP": self.tp, "PP": self.pp, "DP": self.dp, "EP": self.ep}
        wrong = [
            f"{axis} must be at least 1, not {size}" for axis, size in axes.items() if size < 1
        ]
        if wrong:
            raise PartitionError(wrong)

    @property
    def world_size(self) -> int:
        return self.tp * self.pp * self.dp * self.ep


def validate(
    spec: ModelSpec,
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
    spec: ModelSpec, limit: int = 64, allow_uneven_heads: bool = False
) -> tuple[int, ...]:
    """The TP degrees up to `limit` that `validate` accepts, rising. The vocabulary is padded."""
    return tuple(
        tp
        for tp in range(1, limit + 1)
        if not _tensor_parallel_reasons(spec, tp, allow_uneven_heads)
    )


def _tensor_parallel_reasons(spec: ModelSpec, tp: int, allow_uneven_heads: bool) -> list[str]:
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


def _refusal(spec: ModelSpec, reasons: list[str], allow_uneven_heads: bool) -> LayoutError:
    facts = [
        counted(spec.num_heads, "attention head"),
        counted(spec.num_kv_heads, "KV head"),
        f"MLP {spec.intermediate_size}",
    ]
    unsaid = [fact for fact in facts if not any(fact in reason for reason in reasons)]
    legal = legal_tensor_parallel_sizes(spec, allow_uneven_heads=allow_uneven_heads)
    return LayoutError(reasons, legal, ", ".join(unsaid))
