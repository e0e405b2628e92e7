"""The static twin: what a cell shows to everybody, ahead of the widget that some readers get.

A saved notebook, GitHub's view and an HTML export have no kernel and no JavaScript. So whatever a
widget can tell is published before it as pictures, HTML and text; the widget's own output carries
nothing else than the widget, and `course.notebook.tidy` leaves it out of saved files.
"""

from __future__ import annotations

import html
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ipywidgets import DOMWidget

TWIN_CLASS = "labkit-twin"
"""CSS class of the HTML around a twin: a widget's JavaScript and the tests look for it."""

Bundle = tuple[Mapping[str, Any], Mapping[str, Any]]
"""One output: MIME type -> data, and the metadata to display it with."""

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def widgets_can_run() -> bool:
    """Whether anywidget is installed beside this kernel."""
    return importlib.util.find_spec("anywidget") is not None


class Twinned(ABC):
    """Shown by a cell as a static twin, then as a widget.

    A subclass gives `title` and `static`, and `make_widget` if it has a widget. With `folds`, the
    HTML of the twin sits in an open fold, which the widget closes when it appears; without, it
    stays in sight beside the widget.
    """

    title: str
    folds: ClassVar[bool] = True

    @abstractmethod
    def static(self) -> tuple[str, str]:
        """The twin as (HTML, plain text): complete, and readable without the widget."""

    def pictures(self) -> list[Bundle]:
        """Images to show before the HTML. The widget hides them."""
        return []

    def make_widget(self) -> DOMWidget | None:
        """A fresh widget, or None for what is complete without one."""
        return None

    @cached_property
    def widget(self) -> DOMWidget | None:
        """The one widget of this object; None where there is none or widgets cannot run."""
        return self.make_widget() if widgets_can_run() else None

    def outputs(self) -> list[Bundle]:
        """What a cell gets, in order."""
        body, text = self.static()
        if self.folds and self.widget_is_offered():
            summary = f"<summary><strong>{html.escape(self.title)}</strong></summary>"
            body = f'<details open class="{TWIN_CLASS}">{summary}{body}</details>'
        else:
            body = f'<div class="{TWIN_CLASS}">{body}</div>'
        shown = [*self.pictures(), ({"text/html": body, "text/plain": text}, {})]
        if self.widget is not None:
            shown.append(({WIDGET_VIEW: _view_of(self.widget)}, {}))
        return shown

    def widget_is_offered(self) -> bool:
        """Whether the class has a widget at all, here or elsewhere."""
        return type(self).make_widget is not Twinned.make_widget

    def __repr__(self) -> str:
        return self.static()[1]

    def _ipython_display_(self) -> None:
        from IPython.display import display

        for data, metadata in self.outputs():
            display(data, raw=True, metadata=metadata)


def _view_of(widget: DOMWidget) -> dict[str, Any]:
    return {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
