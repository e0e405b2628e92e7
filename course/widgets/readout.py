"""A button that reads a text aloud with the browser's own voice (Web Speech API)."""

import anywidget
import traitlets

from course.widgets.browser_code import javascript, stylesheet


class ReadoutWidget(anywidget.AnyWidget):
    """`lines`: sentences or short paragraphs, without marks. Says so where there is no voice."""

    _esm = javascript("readout")
    _css = stylesheet()

    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)
