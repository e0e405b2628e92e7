"""An explorer in the page: controls in the browser, every answer computed in Python.

Python answers a choice and, in the same message, every choice that one move of one control can
reach. So the page shows a move at once, from what it has, and asks for the next answers meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import anywidget
import traitlets

from course.widgets.browser_code import javascript, stylesheet
from course.widgets.explorer_view import Control, View

Answer = Callable[[Mapping[str, int]], View]


class ExplorerWidget(anywidget.AnyWidget):
    """`answers` has the view of `choice` and of its neighbours, whoever changes `choice`.

    choice: control name -> index of its option. answers: the indices in the order of the controls,
    joined by commas -> view as plain data.
    """

    _esm = javascript("explorer")
    _css = stylesheet("explorer")

    controls = traitlets.List(traitlets.Dict()).tag(sync=True)
    choice = traitlets.Dict().tag(sync=True)
    answers = traitlets.Dict().tag(sync=True)

    def __init__(
        self, controls: Sequence[Control], choice: Mapping[str, int], answer: Answer
    ) -> None:
        self._controls = tuple(controls)
        self._answer = answer
        self._known: dict[str, dict[str, Any]] = {}
        super().__init__(
            controls=[asdict(control) for control in controls],
            choice=dict(choice),
            answers=self._around(choice),
        )
        self.observe(self._answer_choice, "choice")

    @property
    def view(self) -> dict[str, Any]:
        """The answer to the present choice."""
        answer: dict[str, Any] = self.answers[self._key(self.choice)]
        return answer

    def _answer_choice(self, change: dict[str, Any]) -> None:
        new = change["new"]
        if self._key(new) not in self._known:
            self.answers = {self._key(new): self._view_of(new)}  # at once; the neighbours follow
        self.answers = self._around(new)

    def _around(self, choice: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        return {self._key(near): self._view_of(near) for near in self._neighbours(choice)}

    def _neighbours(self, choice: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
        yield choice
        for control in self._controls:
            for index in range(len(control.options)):
                yield {**choice, control.name: index}

    def _view_of(self, choice: Mapping[str, int]) -> dict[str, Any]:
        key = self._key(choice)
        if key not in self._known:
            self._known[key] = self._answer(choice).as_data()
        return self._known[key]

    def _key(self, choice: Mapping[str, int]) -> str:
        return ",".join(str(choice[control.name]) for control in self._controls)
