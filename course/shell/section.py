"""One part of a lesson as a cell shows it: the static twin and, where it has one, its widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from course.lessons.content import Lesson, LessonMap, Quiz
from course.shell import static
from course.shell.marks import to_html, to_text
from course.shell.mermaid import mermaid
from course.widgets.twin import Bundle, Twinned

if TYPE_CHECKING:
    from course.widgets.map import MapWidget
    from course.widgets.quiz import QuizWidget
    from course.widgets.readout import ReadoutWidget


class Section(Twinned):
    """A part that is complete without a widget."""

    def __init__(self, title: str, content: static.Static) -> None:
        self.title = title
        self._content = content

    def static(self) -> static.Static:
        return self._content


class GistSection(Section):
    """Question, gist and decisions, in sight at all times, and a button that reads them aloud."""

    folds: ClassVar[bool] = False

    def __init__(self, lesson: Lesson) -> None:
        super().__init__("Gist", static.gist(lesson))
        self.spoken = [to_text(line) for line in (lesson.question, *lesson.gist)]
        self.spoken += ["After this page you can decide:", *map(to_text, lesson.decisions)]

    def make_widget(self) -> ReadoutWidget:
        from course.widgets.readout import ReadoutWidget

        return ReadoutWidget(lines=self.spoken)


class QuizSection(Section):
    """Scored questions."""

    def __init__(self, lesson: Lesson) -> None:
        super().__init__("The quiz as text, with its answers", static.quizzes(lesson.quizzes))
        self.quizzes = lesson.quizzes

    def make_widget(self) -> QuizWidget:
        from course.widgets.quiz import QuizWidget

        return QuizWidget(quizzes=[quiz_for_browser(quiz) for quiz in self.quizzes])


class MapSection(Section):
    """The map: drawn once for every reader, then nodes and edges to select."""

    def __init__(self, lesson_map: LessonMap) -> None:
        super().__init__("The map in words: every node, every edge", static.map_tables(lesson_map))
        self.map = lesson_map

    def pictures(self) -> list[Bundle]:
        from course.shell.map_picture import map_picture

        return [map_picture(self.map)]

    def make_widget(self) -> MapWidget:
        from course.shell.map_items import drawing
        from course.widgets.map import MapWidget

        return MapWidget(drawing=drawing(self.map), mermaid=mermaid(self.map))


def quiz_for_browser(quiz: Quiz) -> dict[str, Any]:
    """A quiz as the quiz widget takes it."""
    options = [
        {"text": to_html(o.text), "explains": to_html(o.explains), "isRight": o.is_right}
        for o in quiz.options
    ]
    return {"id": quiz.id, "question": to_html(quiz.question), "options": options}
