"""The shard explorer: pick a model and a tensor parallel size, see what every rank holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from course.widgets.explorer_paper import on_paper
from course.widgets.shard_drawing import draw_holdings
from course.widgets.shard_outcome import SIZES, origin, outcome
from course.widgets.shard_tables import legal_table, models_table, refused_table
from course.widgets.shard_view import CONTROLS, choice, view
from course.widgets.twin import Bundle, Twinned
from labkit.plan.presets import PRESETS

if TYPE_CHECKING:
    from course.widgets.explorer import ExplorerWidget


class ShardExplorer(Twinned):
    """What each rank holds, what is copied or padded, what is refused and why.

    model: a name in `labkit.plan.presets.PRESETS`. tp: the size to start with, 1 to 16.

    Raises:
        ValueError: there is no such model, or the size is not offered.
    """

    def __init__(self, model: str = "llama-3.1-70b", tp: int = 16) -> None:
        if model not in PRESETS:
            raise ValueError(f"there is no model {model!r} here; there are {', '.join(PRESETS)}")
        if tp not in SIZES:
            raise ValueError(f"TP {tp} is not offered; choose {SIZES[0]} to {SIZES[-1]}")
        self.preset = PRESETS[model]
        self.start = outcome(self.preset, tp)
        self.title = "As tables: every tensor parallel size, for the model this page started with"

    def static(self) -> tuple[str, str]:
        start = self.start
        said = [*start.reasons, *start.nearest_in_words, *start.sentences]
        tables = [legal_table(self.preset), refused_table(self.preset), models_table(PRESETS)]
        return on_paper(start.headline, said, tables, origin(self.preset))

    def pictures(self) -> list[Bundle]:
        if self.start.held is None:
            return []
        return [draw_holdings(self.start.held, self.preset.title)]

    def make_widget(self) -> ExplorerWidget:
        from course.widgets.explorer import ExplorerWidget

        return ExplorerWidget(CONTROLS, choice(self.preset.name, self.start.tp), view)
