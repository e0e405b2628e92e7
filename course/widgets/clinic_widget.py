"""The widget of the deadlock clinic: a quiz whose questions have an exhibit."""

from course.widgets.browser_code import stylesheet
from course.widgets.quiz import QuizWidget


class ClinicWidget(QuizWidget):
    """A quiz in the looks of the clinic."""

    _css = stylesheet("clinic")
