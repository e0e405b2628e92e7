"""A map whose nodes and edges can be selected by mouse or keyboard, and then explain themselves."""

import anywidget
import traitlets

from course.widgets.browser_code import javascript, stylesheet


class MapWidget(anywidget.AnyWidget):
    """Draws a map and tells what is selected.

    drawing: `title`; `items`, each with `key` ("node:weights", "edge:3"), `kind`, `name` and
    `facts` (pairs of heading and HTML); `layouts`, widest first, each with `width`, `height` and
    the geometry of every item (`course.shell.map_items` makes it). mermaid: the text to copy.
    selected: the key of the selected item, "" for none; may be set from Python.
    """

    _esm = javascript("map")
    _css = stylesheet("map")

    drawing = traitlets.Dict().tag(sync=True)
    mermaid = traitlets.Unicode().tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
