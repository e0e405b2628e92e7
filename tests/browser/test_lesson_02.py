"""Lesson 02 as its reader meets it: saved, run, operated by keyboard, saved again and reopened."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from lab import Notebook

LESSON = "notebooks/02_tensor_parallel.ipynb"
BROKEN_WIDGET = re.compile("model not found|Error displaying widget|Error creating widget", re.I)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

Opened = Callable[[str], Notebook]


def press(item: Any, *keys: str) -> None:
    item.focus()
    for key in keys:
        item.press(key)


def test_i8_saved_page_tells_everything_before_a_kernel_ran_anything(opened: Opened):
    notebook = opened(LESSON)
    page = notebook.page
    text = notebook.text()
    assert not BROKEN_WIDGET.search(text)
    twins = page.locator(".labkit-twin")
    folds = page.locator("details.labkit-twin")
    assert twins.count() >= 10
    assert folds.count() >= 4
    assert all(folds.evaluate_all("all => all.map(twin => twin.open)"))
    for told in ("all-reduce (sum)", "The second meeting", "One more copy of a KV head costs"):
        assert told in text
    folded = page.locator(".jp-NotebookPanel").text_content()
    for told in ("flowchart LR", "A second copy of its key and value projection"):
        assert told in folded
    notebook.screenshot("lesson_02_saved_top", notebook.cells.first)
    for index, twin in enumerate(twins.all()):
        notebook.screenshot(f"lesson_02_saved_twin_{index}", twin)


def test_lesson_02_runs_and_its_widgets_answer_to_the_keyboard(opened: Opened):
    from playwright.sync_api import expect

    notebook = opened(LESSON)
    page = notebook.page
    notebook.run_all(seconds=300)
    assert not BROKEN_WIDGET.search(notebook.text())

    explorer = page.locator(".labkit-explorer").first
    slider = explorer.locator("input[type=range]").first
    figure = explorer.locator("table.labkit-figure")
    expect(figure.locator("tbody tr")).to_have_count(16)
    press(slider, "Home", "ArrowRight")
    expect(explorer.locator(".labkit-verdict")).to_contain_text("over 2 ranks: legal")
    expect(figure.locator("tbody th")).to_have_text(["rank 0", "rank 1"])
    expect(slider).to_have_attribute("aria-valuetext", "2")
    notebook.screenshot("lesson_02_explorer", explorer)

    map_ = page.locator(".labkit-map").first
    panel = map_.locator(".labkit-panel")
    press(map_.get_by_role("button", name=re.compile("^Node: Embedding")), "Enter")
    expect(panel).to_contain_text("looks up the ids")
    notebook.screenshot("lesson_02_map_node", map_)
    edge = map_.get_by_role("button", name=re.compile("^Edge: .*all-reduce")).first
    press(edge, " ")
    for told in ("Edge:", "all-reduce (sum)", "every rank to every rank"):
        expect(panel).to_contain_text(told)
    notebook.screenshot("lesson_02_map_edge", map_)

    question = page.locator(".labkit-quiz fieldset").first
    press(question.get_by_role("radio").first, " ", "ArrowDown")
    press(question.get_by_role("button"), "Enter")
    feedback = question.locator(".labkit-feedback")
    expect(feedback).to_have_text(re.compile("Right|Not right"))
    expect(page.locator(".labkit-quiz .labkit-score")).to_contain_text("Score:")
    notebook.screenshot("lesson_02_quiz", question)

    twins = page.locator("details.labkit-twin")
    assert not any(twins.evaluate_all("all => all.map(twin => twin.open)")), "shown twice"

    page.locator('.jp-NotebookPanel-toolbar [data-command="docmanager:save"]').first.click()
    notebook.wait_idle()
    page.reload()
    expect(notebook.cells.first).to_be_visible(timeout=60_000)
    expect(twins.first).to_be_visible(timeout=60_000)
    assert "The second meeting" in notebook.text()


MISSING_REDUCE = """\
def row_parallel(comm, x, weight, bias):
    columns = torch.arange(weight.shape[1]).tensor_split(comm.size)[comm.rank]
    return x[..., columns] @ weight[:, columns].T + bias
"""
RIGHT = """\
def row_parallel(comm, x, weight, bias):
    columns = torch.arange(weight.shape[1]).tensor_split(comm.size)[comm.rank]
    return comm.all_reduce(x[..., columns] @ weight[:, columns].T) + bias
"""


def test_exercise_tells_the_mistake_and_then_passes(opened: Opened):
    from playwright.sync_api import expect

    notebook = opened("exercises/02_tensor_parallel.ipynb")
    page = notebook.page
    code = page.locator(".jp-NotebookPanel .jp-CodeCell")
    imports = code.filter(has_text="from course.grading import check")
    stub = code.filter(has_text="def row_parallel(")
    check = code.filter(has_text='check("row_parallel"')

    def answer(source: str) -> Any:
        notebook.run_cell(stub, source)
        notebook.run_cell(check)
        return check.locator(".jp-OutputArea")

    notebook.run_cell(imports)

    expect(answer(MISSING_REDUCE)).to_contain_text("partial", timeout=60_000)
    notebook.screenshot("exercise_wrong", check)
    expect(answer(RIGHT)).to_contain_text("3 of 3", timeout=60_000)
    notebook.screenshot("exercise_right", check)
