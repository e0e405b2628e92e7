"""A recorded algorithm in the page, step by step."""

import anywidget
import traitlets

from course.widgets.browser_code import javascript, stylesheet


class StepperWidget(anywidget.AnyWidget):
    """Draws one position of a run at a time.

    run: as `stepper_view.Run.as_data` gives it. position: 0 before the first step, then the number
    of the last step taken; may be set from Python.
    """

    _esm = javascript("stepper")
    _css = stylesheet("stepper")

    run = traitlets.Dict().tag(sync=True)
    position = traitlets.Int(0).tag(sync=True)
