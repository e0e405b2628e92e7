"""The layout explorer in a browser, moved by keyboard."""

import os
from pathlib import Path
from typing import Any

import pytest
from widget_page import blank_page, render, state_of

from course.widgets.layout_controls import LIMITS, START
from course.widgets.layout_explorer import LayoutExplorer
from course.widgets.layout_view import view_of

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def test_explorer_answers_keys_and_shows_bars_and_curves(browser: Any):
    from playwright.sync_api import expect

    page = blank_page(browser, "explorer")
    render(
        page, "explorer", state_of(LayoutExplorer().make_widget(), "controls", "choice", "answers")
    )
    status = page.get_by_role("status").first
    expect(status).to_contain_text(view_of(START).headline)
    rows = page.locator("table.labkit-figure tbody tr")
    expect(rows).to_have_count(len(view_of(START).rows))
    expect(page.locator(".labkit-legend .labkit-look-third")).to_have_count(1)
    expect(page.locator("svg.labkit-chart path").first).to_be_visible()
    expect(page.locator("pre").first).to_contain_text("vllm serve")
    if folder := os.environ.get("LABKIT_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / "layout_explorer.png", full_page=True)

    limit = page.get_by_role("slider", name="Limit on the time per token")
    limit.press("ArrowRight")
    slower = {**START, "limit": START["limit"] + 1}
    assert LIMITS[slower["limit"]] == 30
    expect(limit).to_have_attribute("aria-valuetext", "30 ms")
    expect(status).to_contain_text(view_of(slower).headline)
    limit.press("Home")
    expect(status).to_contain_text("The question has no answer yet.")
    page.get_by_role("button", name="Set a limit of 20 ms").press("Enter")
    expect(status).to_contain_text(view_of(START).headline)
