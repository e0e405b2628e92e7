"""The shard explorer's answer to one choice of model and tensor parallel size."""

from __future__ import annotations

from collections.abc import Mapping

from course.widgets.explorer_view import Bar, Cell, Control, Jump, Look, View
from course.widgets.shard_drawing import copy_number, num_norms, span
from course.widgets.shard_outcome import SIZES, legal_sizes, origin, outcome, size_of
from labkit.plan.holdings import Holdings, RankHoldings
from labkit.plan.presets import PRESETS

MODELS = tuple(PRESETS)
CONTROLS = (
    Control("model", "Model", "menu", tuple(preset.title for preset in PRESETS.values())),
    Control("tp", "Tensor parallel size (TP)", "slider", tuple(map(str, SIZES))),
    Control("uneven", "Let ranks hold different numbers of heads", "tick", ("no", "yes")),
)


def choice(model: str, tp: int) -> dict[str, int]:
    """The position of the controls for a model and a size, heads even."""
    return {"model": MODELS.index(model), "tp": SIZES.index(tp), "uneven": 0}


def view(choice: Mapping[str, int]) -> View:
    """What the explorer shows when its controls stand at `choice`."""
    preset = PRESETS[MODELS[choice["model"]]]
    allow_uneven_heads = choice["uneven"] == 1
    answer = outcome(preset, SIZES[choice["tp"]], allow_uneven_heads=allow_uneven_heads)
    legal = legal_sizes(preset, allow_uneven_heads=allow_uneven_heads)
    held = answer.held
    return View(
        headline=answer.headline,
        is_good=held is not None,
        sentences=answer.sentences,
        origin=origin(preset),
        hint=f"Legal for {preset.title}: TP {', '.join(map(str, legal))}.",
        reasons=answer.reasons,
        jumps=tuple(
            Jump(f"Show TP {tp}", {"tp": SIZES.index(tp)}) for tp in answer.nearest if tp in SIZES
        ),
        caption="What each rank holds, by index into the model",
        columns=_columns(held) if held else (),
        rows=tuple((f"rank {rank.rank}", _cells(held, rank)) for rank in held.ranks)
        if held
        else (),
        legend=_legend(held) if held else (),
    )


def _columns(held: Holdings) -> tuple[tuple[str, str], ...]:
    spec = held.spec
    return (
        ("query heads", f"{spec.num_heads:,} in all"),
        ("KV heads", f"{spec.num_kv_heads:,} in all"),
        ("MLP columns", f"{spec.intermediate_size:,} in all"),
        ("vocabulary rows", f"{_rows(held):,} in all"),
        ("norms", f"{num_norms(held):,} in all"),
        ("weights", f"model: {size_of(_model_bytes(held))}"),
        ("KV cache a token", f"all ranks: {size_of(held.kv_bytes_per_token)}"),
    )


def _cells(held: Holdings, rank: RankHoldings) -> tuple[Cell, ...]:
    spec, copy, norms = held.spec, copy_number(held, rank), num_norms(held)
    kv_look: Look = "again" if copy > 1 else "first"
    norm_look: Look = "again" if rank.rank else "first"
    weights = Bar.of(0, rank.total_bytes, _model_bytes(held))
    return (
        Cell(span(rank.q_heads), (_bar(rank.q_heads, spec.num_heads),)),
        Cell(
            span(rank.kv_heads),
            (_bar(rank.kv_heads, spec.num_kv_heads, kv_look),),
            f"copy {copy}" if copy > 1 else "",
        ),
        Cell(span(rank.mlp_columns), (_bar(rank.mlp_columns, spec.intermediate_size),)),
        _vocabulary(held, rank),
        Cell("all", (Bar.of(0, norms, norms, norm_look),), "again" if rank.rank else ""),
        Cell(size_of(rank.total_bytes), (weights,)),
        Cell(size_of(rank.kv_bytes_per_token)),
    )


def _vocabulary(held: Holdings, rank: RankHoldings) -> Cell:
    bars = [_bar(rank.real_vocab_rows, _rows(held))]
    padding = range(rank.real_vocab_rows.stop, rank.vocab_rows.stop)
    if padding:
        bars.append(_bar(padding, _rows(held), "filler"))
    note = f"+ {len(padding):,} padding" if padding else ""
    return Cell(span(rank.real_vocab_rows), tuple(bars), note)


def _legend(held: Holdings) -> tuple[tuple[Look, str], ...]:
    legend: list[tuple[Look, str]] = [("first", "held, first copy")]
    if held.tp > 1:
        legend.append(("again", "held again: another rank has it too"))
    if held.padded_rows:
        legend.append(("filler", "padding: rows of zeros"))
    return tuple(legend)


def _bar(part: range, total: int, look: Look = "first") -> Bar:
    return Bar.of(part.start, len(part), total, look)


def _rows(held: Holdings) -> int:
    return held.spec.vocab_size + held.padded_rows


def _model_bytes(held: Holdings) -> int:
    return held.bytes_per_element * held.spec.num_parameters
