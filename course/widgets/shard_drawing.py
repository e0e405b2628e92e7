"""The cut of a model drawn: one row a rank, one column for each thing that is divided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from course.figure import new_figure
from course.palette import BLUE, HATCHES, INK, VERMILLION, style
from course.widgets.drawing import image_bundle
from course.widgets.twin import Bundle
from labkit.plan.holdings import Holdings, RankHoldings
from labkit.plan.shard import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIRST: dict[str, Any] = {"facecolor": BLUE}
_COPY: dict[str, Any] = {
    "facecolor": VERMILLION,
    "edgecolor": "white",
    "hatch": HATCHES[1],
    "linewidth": 0,
}
_PADDING: dict[str, Any] = {"facecolor": INK}
_TRACK: dict[str, Any] = {"facecolor": INK, "alpha": 0.12}


def finding(held: Holdings, model: str) -> str:
    """The picture's title: what is held more than once."""
    over = f"{model} over {counted(held.tp, 'rank')}"
    if held.tp == 1:
        return f"{over}: it holds everything"
    if held.num_kv_head_replicas > 1:
        return f"{over}: each KV head is held by {held.num_kv_head_replicas} of them"
    return f"{over}: every head is held once, only the norms {held.tp} times"


def draw_holdings(held: Holdings, model: str) -> Bundle:
    """Which part of the heads, columns and rows each rank holds, as one image output."""
    from matplotlib import rc_context

    title = finding(held, model)
    with style(), rc_context({"hatch.color": "white", "hatch.linewidth": 1.0}):
        figure = new_figure(1.3 + 0.22 * held.tp)
        widths = [3, 3, 3, 3, 1.3]
        panels = figure.subplots(1, len(widths), sharey=True, width_ratios=widths)
        for axes, (heading, total) in zip(panels, _totals(held).items(), strict=True):
            axes.set_title(f"{heading}\n{total:,} in all", fontsize=9, fontweight="normal")
            axes.set_xlim(0, total)
            axes.set_xticks([])
            axes.tick_params(axis="y", length=0)
            for side in ("left", "bottom"):
                axes.spines[side].set_visible(False)
        for rank in held.ranks:
            _draw_rank(panels, held, rank)
        panels[0].set_yticks(range(held.tp), [f"rank {rank}" for rank in range(held.tp)])
        panels[0].invert_yaxis()
        _legend(panels[0], held)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
        return image_bundle(figure, title, in_words(held))


def in_words(held: Holdings) -> str:
    """The drawn ranges as text, one line a rank."""
    return "\n".join(_row_in_words(held, rank) for rank in held.ranks)


def is_copy(held: Holdings, rank: RankHoldings) -> bool:
    """Whether the rank's KV head is a further copy of one that an earlier rank holds."""
    return copy_number(held, rank) > 1


def copy_number(held: Holdings, rank: RankHoldings) -> int:
    """1 on the first rank that holds the KV heads of `rank`, 2 on the next, and so on."""
    return 1 + sum(other.kv_heads == rank.kv_heads for other in held.ranks[: rank.rank])


def span(part: range) -> str:
    """A range as readers write it: `4-7`, or `4` where it holds one; `none` where nothing."""
    if not part:
        return "none"
    return f"{part[0]:,}" if len(part) == 1 else f"{part[0]:,}\N{EN DASH}{part[-1]:,}"


def num_norms(held: Holdings) -> int:
    """Norms of the decoder layers, two each, and the last one: whole on every rank."""
    return 2 * held.spec.num_layers + 1


def _totals(held: Holdings) -> dict[str, int]:
    return {
        "query heads": held.spec.num_heads,
        "KV heads": held.spec.num_kv_heads,
        "MLP columns": held.spec.intermediate_size,
        "vocabulary rows": held.spec.vocab_size + held.padded_rows,
        "norms": num_norms(held),
    }


def _draw_rank(panels: list[Axes], held: Holdings, rank: RankHoldings) -> None:
    padding = range(rank.real_vocab_rows.stop, rank.vocab_rows.stop)
    norms = range(num_norms(held))
    shown = (
        (0, rank.q_heads, _FIRST),
        (1, rank.kv_heads, _COPY if is_copy(held, rank) else _FIRST),
        (2, rank.mlp_columns, _FIRST),
        (3, rank.real_vocab_rows, _FIRST),
        (3, padding, _PADDING),
        (4, norms, _COPY if rank.rank else _FIRST),
    )
    for column, total in enumerate(_totals(held).values()):
        panels[column].barh(rank.rank, total, height=0.7, **_TRACK)
    for column, part, look in shown:
        if part:
            panels[column].barh(rank.rank, len(part), left=part.start, height=0.7, **look)
    if padding:
        label, left = f"{len(padding):,} padding ", rank.real_vocab_rows.start
        panels[3].text(left, rank.rank, label, ha="right", va="center", fontsize=8)


def _legend(axes: Axes, held: Holdings) -> None:
    from matplotlib.patches import Patch

    entries = [Patch(label="held", **_FIRST)]
    if held.tp > 1:
        entries.append(Patch(label="another copy", **_COPY))
    if held.padded_rows:
        entries.append(Patch(label="padding", **_PADDING))
    axes.figure.legend(handles=entries, loc="outside lower left", ncols=3, frameon=False)


def _row_in_words(held: Holdings, rank: RankHoldings) -> str:
    copy = f" (copy {copy_number(held, rank)})" if is_copy(held, rank) else ""
    padding = len(rank.vocab_rows) - len(rank.real_vocab_rows)
    padded = f" and {padding:,} rows of padding" if padding else ""
    return (
        f"rank {rank.rank}: query heads {span(rank.q_heads)}, KV heads {span(rank.kv_heads)}{copy},"
        f" MLP columns {span(rank.mlp_columns)}, vocabulary rows {span(rank.real_vocab_rows)}"
        f"{padded}"
    )
