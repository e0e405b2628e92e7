"""A recorded run on paper: one small table for each step, who holds which partial sum."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from course.figure import WIDTH, new_figure
from course.palette import BLUE, INK, VERMILLION, style
from course.widgets.drawing import image_bundle
from course.widgets.stepper_view import Position, Run
from course.widgets.twin import Bundle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ACROSS = 4
"""Panels side by side; one less where sums are written out."""
_LOOKS: dict[str, dict[str, Any]] = {
    "none": {"facecolor": "none", "edgecolor": INK, "linestyle": ":"},
    "partial": {"facecolor": "none", "edgecolor": INK},
    "whole": {"facecolor": BLUE, "edgecolor": BLUE},
}
_NEW: dict[str, Any] = {"facecolor": "none", "edgecolor": VERMILLION, "linewidth": 1.8}


def draw_run(run: Run) -> Bundle:
    """Every position as a panel of ranks and chunks, as one image output."""
    positions = run.positions
    across = min(MOST_ACROSS - run.sums_are_named, len(positions))
    down = math.ceil(len(positions) / across)
    with style():
        figure = new_figure(0.9 + down * (0.5 + 0.27 * run.ranks), WIDTH)
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for axes, position in zip(panels, positions, strict=False):
            _draw_position(axes, run, position)
        for axes in panels[::across]:
            axes.set_ylabel("rank", fontsize=8)
        if run.chunks > 1:
            for axes in panels[max(0, len(positions) - across) : len(positions)]:
                axes.set_xlabel("chunk", fontsize=8)
        for axes in panels[len(positions) :]:
            axes.set_axis_off()
        _legend(figure, run)
        title = textwrap.fill(run.finding, 76)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
        return image_bundle(figure, run.finding, in_words(run))


def in_words(run: Run) -> str:
    """What the picture shows as text: a line for each position and rank, its chunks in order."""
    lines = []
    for position in run.positions:
        lines.append(position.headline)
        for rank, row in enumerate(position.held):
            cells = ", ".join(held.text for held in row)
            lines.append(f"  rank {rank}: {cells}")
    return "\n".join(lines)


def panel_title(position: Position) -> str:
    """A short title: the step's number and phase."""
    return f"{position.number}: {position.phase}" if position.number else position.phase


def _draw_position(axes: Axes, run: Run, position: Position) -> None:
    from matplotlib.patches import Rectangle

    ranks, chunks = run.ranks, run.chunks
    for rank, row in enumerate(position.held):
        for chunk, held in enumerate(row):
            corner = (chunk + 0.06, rank + 0.1)
            axes.add_patch(Rectangle(corner, 0.88, 0.8, linewidth=0.8, **_LOOKS[held.look]))
            if held.is_new:
                axes.add_patch(Rectangle(corner, 0.88, 0.8, zorder=3, **_NEW))
            axes.text(
                chunk + 0.5,
                rank + 0.5,
                held.brief,
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if held.look == "whole" else INK,
            )
    axes.set_xlim(0, chunks)
    axes.set_ylim(ranks, 0)
    names = [str(chunk) for chunk in range(chunks)] if chunks > 1 else ["the whole buffer"]
    axes.set_xticks([chunk + 0.5 for chunk in range(chunks)], names)
    axes.set_yticks([rank + 0.5 for rank in range(ranks)], [str(n) for n in range(ranks)])
    axes.tick_params(length=0, labelsize=8, pad=1)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_title(panel_title(position), fontsize=9, fontweight="normal", pad=3)


def _legend(figure: Any, run: Run) -> None:
    from matplotlib.patches import Patch

    entries = [
        Patch(label="finished sum" if run.is_sum else "values of this rank", **_LOOKS["whole"]),
        Patch(label="new in this step", **_NEW),
    ]
    if run.is_sum:
        text = "partial sum: " + ("of these ranks" if run.sums_are_named else "of so many ranks")
        entries.insert(0, Patch(label=text, linewidth=0.8, **_LOOKS["partial"]))
    figure.legend(handles=entries, loc="outside lower left", ncols=3, frameon=False, fontsize=8)
