"""Every part of a page says all that the lesson says, without a kernel and without JavaScript."""

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sample_lesson import LESSON

from course.lessons.content import Lesson
from course.shell import Page
from course.shell.marks import to_text
from course.widgets import twin
from course.widgets.twin import TWIN_CLASS, WIDGET_VIEW, Twinned

PARTS = (
    "gist", "guide", "map", "trade_offs", "pitfalls", "questions", "quiz", "further", "levers",
)  # fmt: skip
WITH_WIDGET = ("gist", "map", "quiz")


def page_text(part: Twinned) -> str:
    bodies = [data["text/html"] for data, _ in part.outputs() if "text/html" in data]
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", " ".join(bodies))))


def texts_of(thing: Any) -> Iterator[str]:
    """Every text of a lesson's content, however deep."""
    if isinstance(thing, str):
        yield thing
    elif isinstance(thing, tuple):
        for part in thing:
            yield from texts_of(part)
    elif hasattr(thing, "__dataclass_fields__"):
        for name in thing.__dataclass_fields__:
            if name not in ("id", "source", "target", "at", "name", "url"):
                yield from texts_of(getattr(thing, name))


def without_marks(text: str) -> str:
    """As the page's text reads once tags became spaces."""
    return re.sub(r"\s+", " ", text.replace("`", " ").replace("**", " ")).strip()


def test_all_parts_together_say_every_text_of_the_lesson():
    page = Page(LESSON)
    shown = " ".join(page_text(getattr(page, part)()) for part in PARTS) + LESSON.title
    missing = [t for t in texts_of(LESSON) if without_marks(t) not in shown]
    assert missing == []


def test_plain_text_says_every_text_too():
    page = Page(LESSON)
    shown = "\n".join(repr(getattr(page, part)()) for part in PARTS) + LESSON.title
    missing = [t for t in texts_of(LESSON) if to_text(t) not in shown]
    assert missing == []


@pytest.mark.parametrize("part", PARTS)
def test_the_twin_comes_first_and_the_widget_output_has_nothing_else(part: str):
    *static, last = [set(data) for data, _ in getattr(Page(LESSON), part)().outputs()]
    if part in WITH_WIDGET:
        assert last == {WIDGET_VIEW}
        assert static[-1] == {"text/html", "text/plain"}
    else:
        assert not static
        assert last == {"text/html", "text/plain"}


@pytest.mark.parametrize("part", PARTS)
def test_where_no_widget_can_run_the_twin_is_the_same(part: str, monkeypatch: pytest.MonkeyPatch):
    def twins() -> list[dict[str, Any]]:
        outputs = getattr(Page(LESSON), part)().outputs()
        return [dict(data) for data, _ in outputs if set(data) != {WIDGET_VIEW}]

    with_widgets = twins()
    monkeypatch.setattr(twin, "widgets_can_run", lambda: False)
    assert twins() == with_widgets
    assert getattr(Page(LESSON), part)().widget is None


@pytest.mark.parametrize("part", PARTS)
def test_twins_are_marked_for_the_widgets_and_open_in_a_saved_page(part: str):
    [body] = [
        d["text/html"] for d, _ in getattr(Page(LESSON), part)().outputs() if "text/html" in d
    ]
    fold = f'<details open class="{TWIN_CLASS}">'
    assert body.startswith(fold if part in ("map", "quiz") else f'<div class="{TWIN_CLASS}">')


def test_quiz_as_text_keeps_what_is_right_in_folds():
    body = Page(LESSON).quiz().static()[0]
    in_sight = re.sub(r"<details>.*?</details>", "", body)
    for option in (option for quiz in LESSON.quizzes for option in quiz.options):
        assert option.explains in body
        assert option.explains not in in_sight
    assert body.count("right.</strong>") == len(LESSON.quizzes)
    assert "right.</strong>" not in in_sight


def test_the_gist_is_read_aloud_without_marks():
    spoken = Page(LESSON).gist().spoken
    assert "Does a sample show every part of Page?" in spoken
    assert not [line for line in spoken if "`" in line or "**" in line]


def test_a_lesson_is_taken_by_name_too():
    assert Page("02_tensor_parallel").lesson.name == "02_tensor_parallel"


def test_levers_of_a_lesson_without_any_are_refused():
    plain = Lesson(**{**vars(LESSON), "levers": ()})
    with pytest.raises(ValueError, match="99_sample has no levers"):
        Page(plain).levers()
