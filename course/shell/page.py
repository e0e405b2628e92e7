"""A lesson's page: its content shown part by part, one notebook cell each.

page = Page("02_tensor_parallel")
page.map()
"""

from __future__ import annotations

from course.lessons.content import Lesson
from course.shell import static
from course.shell.section import GistSection, MapSection, QuizSection, Section


class Page:
    """What a lesson says, in parts that display themselves.

    lesson: its name as `course.lessons.load` knows it, or a Lesson.
    """

    def __init__(self, lesson: str | Lesson) -> None:
        if isinstance(lesson, str):
            from course.lessons import load

            lesson = load(lesson)
        self.lesson = lesson

    def __repr__(self) -> str:
        return f"Page({self.lesson.name!r}): {self.lesson.title}"

    def gist(self) -> GistSection:
        """The question, the gist, what the reader can decide; a button reads them aloud."""
        return GistSection(self.lesson)

    def guide(self) -> Section:
        """When to prefer the technique, when to avoid it."""
        return Section("When to use it", static.guide(self.lesson.guide))

    def map(self) -> MapSection:
        """The lesson's map: a picture, then nodes and edges to select."""
        return MapSection(self.lesson.map)

    def trade_offs(self) -> Section:
        """Pros and cons."""
        return Section("Pros and cons", static.trade_offs(self.lesson))

    def pitfalls(self) -> Section:
        """What goes wrong, how it shows, what to do."""
        return Section("Pitfalls", static.pitfalls(self.lesson.pitfalls))

    def questions(self) -> Section:
        """Questions with an answer to reveal."""
        return Section("Self-check", static.questions(self.lesson.questions))

    def quiz(self) -> QuizSection:
        """Scored questions; every wrong option explains its trap."""
        return QuizSection(self.lesson)

    def further(self) -> Section:
        """References."""
        return Section("Go deeper", static.references(self.lesson.references))

    def levers(self) -> Section:
        """The levers of the overview, each with gain and cost. Raises ValueError without any."""
        if not self.lesson.levers:
            raise ValueError(f"lesson {self.lesson.name} has no levers; the overview has")
        return Section("Levers", static.levers(self.lesson.levers))
