"""The layout explorer: a model, some GPUs and a limit in, layouts with their reasons out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from course.figure import new_figure
from course.labels import Label, quantity
from course.palette import BLUE, GREEN, HATCHES, INK, PURPLE, VERMILLION, style
from course.table import Table
from course.widgets.drawing import image_bundle
from course.widgets.explorer_paper import on_paper
from course.widgets.explorer_view import Look
from course.widgets.layout_answer import Row, answer_at
from course.widgets.layout_bars import Part, memory_parts, step_parts
from course.widgets.layout_controls import CONTROLS, LIMITS, START, at, in_words
from course.widgets.layout_view import chart, commands, headline, origin, sentences, view_of
from course.widgets.twin import Bundle, Twinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course.widgets.explorer import ExplorerWidget

_PAINT: dict[Look, tuple[str, str]] = {
    "first": (BLUE, HATCHES[0]),
    "second": (GREEN, HATCHES[2]),
    "third": (PURPLE, HATCHES[3]),
    "again": (VERMILLION, HATCHES[1]),
    "filler": (INK, HATCHES[0]),
}


class LayoutExplorer(Twinned):
    """Memory of a rank, the decode step by term, the Pareto plot and the engine flags."""

    title = "Which layout serves, in tables"

    def __init__(self) -> None:
        self.position = at(START)
        self.answer = answer_at(self.position)

    def static(self) -> tuple[str, str]:
        lines = [f"{in_words(START)}.", *sentences(self.answer)]
        tables = [self.layouts_table(), self.limits_table()]
        typed = commands(self.position, self.answer)
        return on_paper(headline(self.answer), lines, tables, origin(self.position), typed)

    def pictures(self) -> list[Bundle]:
        return [self._draw_bars(), self._draw_chart()]

    def make_widget(self) -> ExplorerWidget:
        from course.widgets.explorer import ExplorerWidget

        return ExplorerWidget(CONTROLS, START, view_of)

    def layouts_table(self) -> Table:
        """Every row of the page."""
        rows = [_cells(row) for row in self.answer.rows]
        columns = (
            "layout",
            "weights a rank",
            "KV pool",
            "step",
            "token",
            "batch",
            "tokens/s a GPU",
            "why not",
        )
        return Table(columns, rows, caption=f"Layouts, the best first ({Label.MODELLED})")

    def limits_table(self) -> Table:
        """The best layout under every limit, everything else as at the start."""
        rows = []
        for index, limit in enumerate(LIMITS):
            if limit is None:
                continue
            best = answer_at(at({**START, "limit": index})).best
            found = (
                ("none", "", "")
                if best is None
                else (best.title, str(best.batch), f"{best.tokens_per_second_per_gpu:,.1f}")
            )
            rows.append((f"{limit:g} ms", *found))
        columns = ("limit on a token", "best layout", "batch of a replica", "tokens/s a GPU")
        caption = f"The same question under other limits ({Label.MODELLED})"
        return Table(columns, rows, caption=caption)

    def _draw_bars(self) -> Bundle:
        from matplotlib import rc_context

        rows = [row for row in self.answer.rows if row.memory and row.point]
        title = headline(self.answer)
        memory = [memory_parts(row.memory) for row in rows if row.memory]
        steps = [step_parts(row.point.decode) for row in rows if row.point]
        with style(), rc_context({"hatch.color": "white", "hatch.linewidth": 1.0}):
            figure = new_figure(1.7 + 0.3 * len(rows))
            left, right = figure.subplots(1, 2, sharey=True)
            _draw(
                left,
                memory,
                [row.title for row in rows],
                f"memory of a rank ({Label.MODELLED})",
                "B",
            )
            _draw(
                right, steps, [row.title for row in rows], f"a decode step ({Label.MODELLED})", "s"
            )
            figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
            text = "\n".join(str(self.layouts_table()).splitlines())
            return image_bundle(figure, title, text)

    def _draw_chart(self) -> Bundle:
        assert self.answer.answer is not None
        title = "More tokens a second cost time per token, until the limit"
        with style():
            figure = new_figure(3.2)
            axes = figure.add_subplot()
            chart(self.answer.answer).draw(axes)
            figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
            return image_bundle(figure, title, chart(self.answer.answer).says)


def _cells(row: Row) -> tuple[object, ...]:
    def shown(value: float | None, unit: str) -> str:
        return "" if value is None else quantity(value, unit, short=True)

    parts = memory_parts(row.memory) if row.memory else None
    point, one = row.point, row.candidate
    return (
        row.title,
        shown(parts[0].size, "B") if parts else "",
        shown(parts[2].size, "B") if parts else "",
        shown(point.decode.seconds if point else None, "s"),
        shown(point.tpot if point else None, "s"),
        str(point.batch) if point else "",
        f"{one.tokens_per_second_per_gpu:,.1f}" if one else "",
        "; ".join(row.reasons),
    )


def _draw(
    axes: Axes, tracks: list[tuple[Part, ...]], names: list[str], title: str, unit: str
) -> None:
    """Stacked bars, one for each layout, with the total behind it."""
    left = [0.0] * len(tracks)
    for index, part in enumerate(tracks[0]):
        sizes = [track[index].size for track in tracks]
        colour, hatch = _PAINT[part.look]
        paint: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": "white"}
        axes.barh(names, sizes, left=left, height=0.6, label=part.name, linewidth=0, **paint)
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    for place, total in enumerate(left):
        axes.text(total, place, f" {quantity(total, unit, short=True)}", va="center", fontsize=8)
    axes.set_xlim(0, 1.25 * max(left))
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if not axes.yaxis_inverted():
        axes.invert_yaxis()
    axes.set_xlabel(title, loc="left", fontsize=9)
    axes.legend(
        ncols=2,
        fontsize=7.5,
        loc="lower left",
        bbox_to_anchor=(-0.03, 1.0),
        frameon=False,
        handlelength=1.4,
        columnspacing=0.8,
    )
