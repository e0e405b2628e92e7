"""The explorers' JavaScript in a browser, moved by keyboard, on answers that Python computed."""

import json
from typing import Any

import pytest
from widget_page import blank_page, render, state_of

from course.widgets.explorer import ExplorerWidget
from course.widgets.regimes import RegimeExplorer
from course.widgets.shard_explorer import ShardExplorer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def shown(browser: Any, widget: ExplorerWidget) -> Any:
    """A page that shows the widget; `answer(page, widget)` then plays the kernel."""
    page = blank_page(browser, "explorer")
    render(page, "explorer", state_of(widget, "controls", "choice", "answers"))
    return page


def answer(page: Any, widget: ExplorerWidget) -> None:
    """What the kernel does with a move: takes the choice, sends the answers around it."""
    widget.choice = page.evaluate("window.saved.choice")
    page.evaluate(
        "answers => model.set('answers', answers)", json.loads(json.dumps(widget.answers))
    )


def test_shard_slider_moves_by_keyboard_and_the_figure_with_it(browser: Any):
    from playwright.sync_api import expect

    widget = ShardExplorer("llama-3.1-70b", 16).make_widget()
    page = shown(browser, widget)
    slider, verdict = page.get_by_role("slider"), page.locator(".labkit-verdict")
    expect(page.locator("tbody tr")).to_have_count(16)
    expect(page.locator("tbody")).to_contain_text("copy 2")

    slider.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", "15")
    expect(verdict).to_contain_text("over 15 ranks: refused")
    expect(verdict).to_contain_text("64 attention heads do not divide over TP 15")
    expect(page.locator("tbody tr")).to_have_count(0)

    page.get_by_role("button", name="Show TP 8").press("Enter")
    expect(verdict).to_contain_text("over 8 ranks: legal")
    expect(page.locator("tbody tr")).to_have_count(8)
    expect(page.locator("tbody")).not_to_contain_text("copy 2")
    expect(slider).to_be_focused()

    answer(page, widget)
    page.get_by_label("Model").select_option("SmolLM2 360M")
    answer(page, widget)
    slider.press("ArrowLeft")
    answer(page, widget)
    page.get_by_label("Let ranks hold").press("Space")
    assert page.evaluate("window.saved.choice") == {"model": 1, "tp": 6, "uneven": 1}


def test_slider_step_is_announced_by_its_value_and_the_headline_alone(browser: Any):
    from playwright.sync_api import expect

    widget = ShardExplorer("llama-3.1-70b", 16).make_widget()
    page = shown(browser, widget)
    slider = page.get_by_role("slider", name="Tensor parallel size (TP)", exact=True)
    slider.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", "15")
    live = page.locator("[role=status], [aria-live], output:not([aria-hidden=true])")
    announced = live.filter(visible=True)
    expect(announced).to_have_text(["✗ Llama 3.1 70B over 15 ranks: refused."])
    expect(page.locator("output")).to_have_text("15")
    expect(page.locator(".labkit-verdict li")).not_to_have_count(0)


def test_regimes_are_reached_by_keyboard(browser: Any):
    from playwright.sync_api import expect

    page = shown(browser, RegimeExplorer().make_widget())
    verdict, scaling = page.locator(".labkit-verdict"), page.get_by_label("Compute that divides")
    expect(verdict).to_contain_text("The slow link still beats one GPU")
    scaling.press("Home")
    expect(verdict).to_contain_text("One GPU beats both links")
    scaling.press("ArrowRight")
    expect(verdict).to_contain_text("Only the fast link pays")


def test_page_says_so_when_python_does_not_answer(browser: Any):
    from playwright.sync_api import expect

    widget = RegimeExplorer().make_widget()
    page = shown(browser, widget)
    waiting = page.locator(".labkit-waiting")
    page.get_by_label("Compute that divides").press("Home")
    page.get_by_label("Bandwidth").press("Home")
    expect(waiting).to_be_visible(timeout=5_000)
    expect(waiting).to_contain_text("Python has not answered yet")
    answer(page, widget)
    expect(waiting).to_be_hidden()
    expect(page.locator("tbody")).to_contain_text("8 GPUs, 1 GB/s")
