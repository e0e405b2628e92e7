"""The widgets' Python half, and what their JavaScript keeps to."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
from sample_lesson import LESSON, MAP

import course.widgets
from course.shell import Page
from course.widgets.browser_code import javascript
from course.widgets.twin import TWIN_CLASS

SCRIPTS = sorted(Path(course.widgets.__file__).parent.glob("*.js"))
STYLES = sorted(Path(course.widgets.__file__).parent.glob("*.css"))


def test_map_widget_gets_every_node_and_edge_once_with_what_they_say():
    widget = Page(LESSON).map().widget
    items = {item["key"]: item for item in widget.drawing["items"]}
    assert len(items) == len(widget.drawing["items"]) == len(MAP.nodes) + len(MAP.edges)
    assert items["node:weights"]["facts"] == [
        ["", "Each rank loads <code>1/n</code> of every matrix."]
    ]
    assert [heading for heading, _ in items["edge:0"]["facts"]] == [
        "Protocol", "Direction", "Effect", "Consequence",
    ]  # fmt: skip
    assert "flowchart LR" in widget.mermaid


def test_every_layout_of_a_map_draws_every_item_and_a_chain_has_a_narrow_one():
    for lesson in (LESSON, Page("00_start_here").lesson, Page("02_tensor_parallel").lesson):
        drawing = Page(lesson).map().widget.drawing
        for layout in drawing["layouts"]:
            kinds = ["Node" if "box" in mark else "Edge" for mark in layout["marks"]]
            assert kinds == [item["kind"] for item in drawing["items"]]
        widths = [layout["width"] for layout in drawing["layouts"]]
        assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 350  # fits JupyterLab in a window of 800 px, its file list open


def test_keys_reach_the_edges_of_a_node_right_after_it():
    keys = [item["key"] for item in Page(LESSON).map().widget.drawing["items"]]
    assert keys[:5] == ["node:weights", "edge:0", "edge:1", "edge:2", "node:kv"]


def test_quiz_widget_gets_what_is_right_and_starts_at_nothing():
    widget = Page(LESSON).quiz().widget
    rights = [[option["isRight"] for option in quiz["options"]] for quiz in widget.quizzes]
    assert rights == [[True, False, False], [False, True, False]]
    assert (widget.answers, widget.score, widget.first_try) == ({}, 0, 0)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_loads_anything_from_a_network(script: Path):
    text = script.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|\bimport\b|\bfetch\(|XMLHttpRequest|\beval\(", text)


@pytest.mark.parametrize("style", STYLES, ids=lambda path: path.name)
def test_no_style_loads_anything_from_a_network(style: Path):
    assert not re.search(r"https?:|@import|url\(", style.read_text())


@pytest.mark.parametrize("name", ["map", "quiz", "readout"])
def test_joined_modules_define_no_name_twice(name: str):
    names = re.findall(r"^(?:function|const|let) (\w+)", javascript(name), re.MULTILINE)
    assert len(set(names)) == len(names)


def test_scripts_look_for_the_twin_by_the_class_that_it_has():
    assert f"details.{TWIN_CLASS}" in javascript("map")


def test_scripts_and_styles_ship_with_the_package():
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    assert 'course = ["widgets/*.js", "widgets/*.css"]' in pyproject.read_text()
    assert files("course.widgets").joinpath("page.js").is_file()
