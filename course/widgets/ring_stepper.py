"""The ring stepper: an algorithm's real run, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from course.table import Table
from course.widgets.explorer_paper import on_paper
from course.widgets.stepper_drawing import draw_run
from course.widgets.stepper_view import Run
from course.widgets.twin import Bundle, Twinned

if TYPE_CHECKING:
    from course.widgets.stepper import StepperWidget
    from labkit.ranks.algorithm_record import StepRecord

ORIGIN = (
    "Recorded by the ranks themselves while they ran the algorithm: who sent what, and whose "
    "values were in it. What it costs in time is another table."
)


class RingStepper(Twinned):
    """Who sends what to whom in each step, and who then holds which partial sum.

    record: of any algorithm in `labkit.ranks.algorithms`, as `merge_records` makes it.
    """

    def __init__(self, record: StepRecord) -> None:
        self.run = Run(record)
        self.title = f"{self.run.title}: every step in a table"

    def static(self) -> tuple[str, str]:
        headlines = [position.headline for position in self.run.positions]
        return on_paper(self.run.finding, headlines, [messages_table(self.run)], ORIGIN)

    def pictures(self) -> list[Bundle]:
        return [draw_run(self.run)]

    def make_widget(self) -> StepperWidget:
        from course.widgets.stepper import StepperWidget

        return StepperWidget(run=self.run.as_data())


def messages_table(run: Run) -> Table:
    """Every message of the run: its step, its ends, what it carries and what becomes of that."""
    rows = [
        (position.number, position.phase, sent.src, sent.dst, sent.cargo, sent.then)
        for position in run.positions
        for sent in position.sent
    ]
    columns = ("step", "phase", "from rank", "to rank", "carries", "there it is")
    return Table(columns, rows, caption=f"{run.title}: every message")
