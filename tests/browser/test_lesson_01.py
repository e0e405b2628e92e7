"""Lesson 01 as its reader meets it: saved, run, and its widgets operated by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from lab import Notebook

LESSON = "notebooks/01_collectives.ipynb"
BROKEN_WIDGET = re.compile("model not found|Error displaying widget|Error creating widget", re.I)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Opened = Callable[[str], Notebook]


def test_lesson_01_tells_everything_when_saved_and_its_widgets_answer_when_run(opened: Opened):
    from playwright.sync_api import expect

    notebook = opened(LESSON)
    page = notebook.page
    saved = page.locator(".jp-NotebookPanel").text_content() or ""
    for told in ("flowchart LR", "every message", "What the pool said", "Every link"):
        assert told in saved
    folds = page.locator("details.labkit-twin")
    assert folds.count() >= 6
    assert all(folds.evaluate_all("all => all.map(twin => twin.open)"))

    notebook.run_all(seconds=200)
    assert not BROKEN_WIDGET.search(notebook.text())
    assert not any(folds.evaluate_all("all => all.map(twin => twin.open)")), "shown twice"

    stepper = page.locator(".labkit-stepper").first
    slider = stepper.locator("input[type=range]").first
    slider.focus()
    slider.press("End")
    expect(stepper).to_contain_text("Step 6 of 6")
    notebook.screenshot("lesson_01_stepper", stepper)

    clinic = page.locator(".labkit-quiz").filter(has=page.locator(".labkit-exhibit pre")).first
    question = clinic.locator("fieldset").first
    question.get_by_role("radio").nth(1).focus()
    question.get_by_role("radio").nth(1).press(" ")
    question.get_by_role("button").press("Enter")
    expect(question.locator(".labkit-feedback")).to_contain_text("circle of waits")
    notebook.screenshot("lesson_01_clinic", question)

    sketch = page.locator(".labkit-explorer").first
    notebook.screenshot("lesson_01_sketch", sketch)
    for call in ("times_picture", "recorded_picture"):
        cell = page.locator(".jp-CodeCell").filter(has_text=f"{call}(")
        expect(cell.locator("img")).to_have_count(1)
        notebook.screenshot(f"lesson_01_{call}", cell.locator("img"))
