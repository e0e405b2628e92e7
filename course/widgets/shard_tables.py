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
            "query heads",
            "KV heads",
            "ranks with the same KV head",
            "MLP columns",
            "vocabulary rows",
            "weights",
            "KV cache a token (all ranks)",
        ),
        [_legal_row(_held(preset, tp)) for tp in legal_sizes(preset)],
        caption=(
            f"{preset.title}: what one rank holds at every legal TP up to {SIZES[-1]} "
            f"({Label.MODELLED}, 16 bits)"
        ),
    )


def refused_table(preset: Preset) -> Table:
    """Every refused size with all of its reasons; sizes with the same reasons share a row."""
    by_reasons: dict[str, list[int]] = {}
    for tp in SIZES:
        answer = outcome(preset, tp)
        if answer.reasons:
            reasons = "; ".join(answer.reasons).replace(f"TP {tp}", "TP n")
            by_reasons.setdefault(reasons, []).append(tp)
    return Table(
        ("TP n", "refused because"),
        [(", ".join(map(str, sizes)), reasons) for reasons, sizes in by_reasons.items()],
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
    padding = f" ({held.padded_rows:,} padding in all)" if held.padded_rows else ""
    return (
        held.tp,
        len(rank.q_heads),
        len(rank.kv_heads),
        held.num_kv_head_replicas,
        len(rank.mlp_columns),
        f"{len(rank.vocab_rows):,}{padding}",
        size_of(rank.total_bytes),
        f"{size_of(rank.kv_bytes_per_token)} ({size_of(held.kv_bytes_per_token)})",
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
