"""The shard explorer on paper: every size it offers in tables, for readers without a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from course.labels import Label
from course.table import Table
from course.widgets.shard_outcome import BYTES_PER_ELEMENT, SIZES, legal_sizes, outcome, size_of
from labkit.plan.holdings import Holdings, holdings
from labkit.plan.presets import Preset


def legal_table(preset: Preset) -> Table:
    """What one rank holds at every legal size."""
    return Table(
        (
            "TP",
            "query heads a rank",
            "KV heads a rank",
            "ranks that hold the same KV head",
            "MLP columns a rank",
            "vocabulary rows a rank",
            "of them padding, all ranks",
            "weights a rank",
            "KV cache a token, one rank",
            "KV cache a token, all ranks",
        ),
        [_legal_row(_held(preset, tp)) for tp in legal_sizes(preset)],
        caption=f"{preset.title}: every legal TP up to {SIZES[-1]} ({Label.MODELLED}, 16 bits)",
    )


def refused_table(preset: Preset) -> Table:
    """Every refused size with all of its reasons."""
    legal = legal_sizes(preset)
    refused = [outcome(preset, tp) for tp in SIZES if tp not in legal]
    return Table(
        ("TP", "refused because", "nearest legal"),
        [
            (answer.tp, "; ".join(answer.reasons), ", ".join(map(str, answer.nearest)))
            for answer in refused
        ],
        caption=f"{preset.title}: every TP up to {SIZES[-1]} that is refused",
    )


def models_table(presets: Mapping[str, Preset]) -> Table:
    """Every model: its legal sizes, from which TP on KV heads are copied, what a copy costs."""
    return Table(
        (
            "model",
            "legal TP",
            "KV heads",
            "copied from TP",
            "one copy: weights",
            "one copy: KV cache a token",
        ),
        [_model_row(preset) for preset in presets.values()],
        caption=f"All models, TP up to {SIZES[-1]} ({Label.MODELLED}, 16 bits)",
    )


def _held(preset: Preset, tp: int) -> Holdings:
    return holdings(preset.spec, tp, bytes_per_element=BYTES_PER_ELEMENT)


def _legal_row(held: Holdings) -> tuple[object, ...]:
    rank = held.ranks[0]
    return (
        held.tp,
        len(rank.q_heads),
        len(rank.kv_heads),
        held.num_kv_head_replicas,
        len(rank.mlp_columns),
        len(rank.vocab_rows),
        held.padded_rows,
        size_of(rank.total_bytes),
        size_of(rank.kv_bytes_per_token),
        size_of(held.kv_bytes_per_token),
    )


def _model_row(preset: Preset) -> tuple[object, ...]:
    legal = legal_sizes(preset)
    copied = [tp for tp in legal if _held(preset, tp).num_kv_head_replicas > 1]
    whole = _held(preset, 1)
    return (
        preset.title,
        ", ".join(map(str, legal)),
        preset.spec.num_kv_heads,
        str(copied[0]) if copied else "none of these",
        size_of(whole.kv_head_weight_bytes),
        size_of(whole.kv_head_bytes_per_token),
    )
