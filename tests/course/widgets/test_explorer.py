"""The explorer widget answers a choice and everything one move away, and nothing older."""

from collections.abc import Mapping

from course.widgets.explorer import ExplorerWidget
from course.widgets.explorer_view import Bar, Cell, Control, View

CONTROLS = (
    Control("size", "Size", "slider", ("one", "two", "three")),
    Control("double", "Double it", "tick", ("no", "yes")),
)


def answer(choice: Mapping[str, int]) -> View:
    value = (choice["size"] + 1) * (choice["double"] + 1)
    cell = Cell(str(value), (Bar.of(0, value, 6),))
    return View(f"{value}", value > 1, (), "made up", rows=(("row", (cell,)),))


def test_the_page_has_the_answer_to_every_next_move():
    widget = ExplorerWidget(CONTROLS, {"size": 0, "double": 0}, answer)
    assert set(widget.answers) == {"0,0", "1,0", "2,0", "0,1"}
    assert widget.answers["2,0"]["headline"] == "3"
    assert widget.answers["0,1"]["headline"] == "2"


def test_a_move_brings_the_answers_around_the_new_choice():
    widget = ExplorerWidget(CONTROLS, {"size": 0, "double": 0}, answer)
    widget.choice = {"size": 2, "double": 0}
    assert set(widget.answers) == {"2,0", "0,0", "1,0", "2,1"}
    assert widget.view["headline"] == "3"
    widget.choice = {"size": 2, "double": 1}
    assert widget.view["headline"] == "6"


def test_each_choice_is_computed_once():
    asked = []

    def counting(choice: Mapping[str, int]) -> View:
        asked.append(tuple(choice.values()))
        return answer(choice)

    widget = ExplorerWidget(CONTROLS, {"size": 0, "double": 0}, counting)
    widget.choice = {"size": 1, "double": 0}
    widget.choice = {"size": 0, "double": 0}
    assert len(asked) == len(set(asked)) == 5


def test_a_bar_is_percent_of_its_track():
    assert Bar.of(2, 1, 8, "again") == Bar(25.0, 12.5, "again")
