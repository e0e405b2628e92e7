"""A scored quiz: choose, check, and read why the choice is right or which trap it is."""

import anywidget
import traitlets

from course.widgets.browser_code import javascript, stylesheet


class QuizWidget(anywidget.AnyWidget):
    """Questions with radio buttons.

    quizzes: one dict each with `id`, `question` (HTML) and `options`, each of which has `text` and
    `explains` (HTML) and `isRight`; where it has an `exhibit` (HTML), that stands above them.
    answers: quiz id -> index of the option checked last. score: questions whose last checked
    answer is right. first_try: those right at once.
    """

    _esm = javascript("quiz")
    _css = stylesheet()

    quizzes = traitlets.List(traitlets.Dict()).tag(sync=True)
    answers = traitlets.Dict().tag(sync=True)
    score = traitlets.Int(0).tag(sync=True)
    first_try = traitlets.Int(0).tag(sync=True)
