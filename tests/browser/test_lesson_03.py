"""Lesson 03 as its reader meets it: saved, then run in seconds, without ranks."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from lab import Notebook

LESSON = "notebooks/03_layout_planning.ipynb"
BROKEN_WIDGET = re.compile("model not found|Error displaying widget|Error creating widget", re.I)
PICTURES = ("cache_picture", "memory_picture", "steps_picture", "parity_picture", "pareto_picture")

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Opened = Callable[[str], Notebook]


def test_lesson_03_tells_everything_when_saved_and_its_widgets_answer_when_run(opened: Opened):
    from playwright.sync_api import expect

    notebook = opened(LESSON)
    page = notebook.page
    saved = page.locator(".jp-NotebookPanel").text_content() or ""
    for told in ("flowchart LR", "more than the 67.1 GiB", "zero channels", "vllm serve"):
        assert told in saved
    folds = page.locator("details.labkit-twin")
    assert folds.count() >= 2
    assert all(folds.evaluate_all("all => all.map(twin => twin.open)"))

    notebook.run_all(seconds=120)
    assert not BROKEN_WIDGET.search(notebook.text())
    assert not any(folds.evaluate_all("all => all.map(twin => twin.open)")), "shown twice"

    for call in PICTURES:
        pictures = page.locator(".jp-CodeCell").filter(has_text=f"{call}(").locator("img")
        expect(pictures.first).to_be_visible()
        notebook.screenshot(f"lesson_03_{call}", pictures.first)

    explorer = page.locator(".labkit-explorer").first
    limit = explorer.get_by_role("slider", name="Limit on the time per token")
    limit.focus()
    limit.press("ArrowRight")
    expect(limit).to_have_attribute("aria-valuetext", "30 ms")
    expect(explorer.get_by_role("status").first).to_contain_text("TP 8: 333 tokens/s")
    notebook.screenshot("lesson_03_explorer", explorer)

    quiz = page.locator(".labkit-quiz fieldset").filter(has_text="Does TP 2 fit?").first
    quiz.get_by_role("radio").nth(0).focus()
    quiz.get_by_role("radio").nth(0).press(" ")
    quiz.get_by_role("button").press("Enter")
    expect(quiz.locator(".labkit-feedback")).to_contain_text("rank by rank")
    notebook.screenshot("lesson_03_quiz", quiz)
