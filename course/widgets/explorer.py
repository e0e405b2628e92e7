"""An explorer in the page: controls in the browser, every answer computed in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import anywidget
import traitlets

from course.widgets.browser_code import javascript, stylesheet
from course.widgets.explorer_view import Control, View

Answer = Callable[[Mapping[str, int]], View]


class ExplorerWidget(anywidget.AnyWidget):
    """`view` answers `choice` (control name -> index of its option), whoever changes it."""

    _esm = javascript("explorer")
    _css = stylesheet("explorer")

    controls = traitlets.List(traitlets.Dict()).tag(sync=True)
    choice = traitlets.Dict().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)

    def __init__(self, controls: Sequence[Control], choice: Mapping[str, int], answer: Answer):
        self._answer = answer
        super().__init__(
            controls=[asdict(control) for control in controls],
            choice=dict(choice),
            view=answer(choice).as_data(),
        )
        self.observe(self._show, "choice")

    def _show(self, change: dict[str, Any]) -> None:
        self.view = self._answer(change["new"]).as_data()
