"""The collective sketch: does splitting a decode step pay, over which link, up to which batch?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from course.figure import new_figure
from course.labels import Label, quantity
from course.palette import INK, style
from course.table import Table
from course.widgets.drawing import image_bundle
from course.widgets.explorer_paper import on_paper
from course.widgets.sketch_controls import SIZES, SketchControls
from course.widgets.sketch_links import links
from course.widgets.sketch_steps import compared, crossing, crossing_in_words, step
from course.widgets.sketch_view import chart, origin, view
from course.widgets.twin import Bundle, Twinned
from labkit.plan.collectives import CostModel

if TYPE_CHECKING:
    from course.widgets.explorer import ExplorerWidget


class CollectiveSketch(Twinned):
    """T_compute / n + T_all-reduce against one GPU: the regime named, the crossing marked.

    measured: cost models of all-reduces fitted to this machine's own times, by the name to show:
    `{"shared memory": calibrate(points, "two_shot").model}`.
    """

    title = "When a split pays over which link, in tables"

    def __init__(self, measured: Mapping[str, CostModel] | None = None) -> None:
        self.controls = SketchControls(links(measured))
        self.start = self.controls.at(self.controls.start)

    def static(self) -> tuple[str, str]:
        answer = view(self.start)
        lines = [f"{self.controls.in_words(self.controls.start)}.", *answer.sentences]
        tables = [self.links_table(), self.sizes_table()]
        source = origin(self.start.tp, self.controls.menu)
        return on_paper(answer.headline, lines, tables, source)

    def pictures(self) -> list[Bundle]:
        title = f"TP {self.start.tp}, {self.start.link.name}: {crossing_in_words(self.start)}"
        with style():
            figure = new_figure(3.0)
            axes = figure.add_subplot()
            chart(self.start).draw(axes)
            figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
            return [image_bundle(figure, title, "\n".join(view(self.start).sentences))]

    def make_widget(self) -> ExplorerWidget:
        from course.widgets.explorer import ExplorerWidget

        return ExplorerWidget(
            self.controls.all, self.controls.start, lambda choice: view(self.controls.at(choice))
        )

    def links_table(self) -> Table:
        """Every link of the menu, everything else as at the start."""
        rows = []
        for link in self.controls.menu:
            result, batch = step(self.start, link), crossing(self.start, link)
            rows.append(
                (
                    link.name,
                    link.figures(self.start.tp),
                    quantity(result.collective_seconds, "s"),
                    quantity(result.step_seconds, "s"),
                    result.regime.value,
                    "none" if batch is None else f"{batch:.0f}",
                )
            )
        columns = ("link", "its figures", "all-reduces", "step", "regime", "crossing at batch")
        result = step(self.start, self.start.link)
        one_gpu, compute = (
            quantity(seconds, "s") for seconds in (result.one_gpu_seconds, result.compute_seconds)
        )
        caption = (
            f"Every link, the rest as above ({Label.MODELLED}): one GPU takes {one_gpu}, each of "
            f"{self.start.tp} computes for {compute}"
        )
        return Table(columns, rows, caption=caption)

    def sizes_table(self) -> Table:
        """The step at every TP, over the chosen link and those laid over it."""
        start = self.controls.start
        rows = []
        for index, tp in enumerate(SIZES):
            position = self.controls.at({**start, "tp": index})
            seconds = (result.step_seconds for _, result in compared(position))
            rows.append((tp, *(quantity(each, "s") for each in seconds)))
        columns = ("TP", *(link.name for link, _ in compared(self.start)))
        caption = f"The step over more and more GPUs ({Label.MODELLED})"
        return Table(columns, rows, caption=caption)
