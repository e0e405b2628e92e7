"""Map, quiz, read-aloud button and folded twin in a browser, without JupyterLab."""

from typing import Any

import pytest
from widget_page import blank_page, render, state_of

from course.shell import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

TWO_PLACES = '<div id="a"></div><div id="b"></div>'

# Speech that says nothing: it keeps what it would say, and cancels as Chromium does, late.
SPEECH = """
() => {
  window.spoken = [];
  window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
  const cancel = () => {
    const [now] = spoken.splice(0);
    if (now) setTimeout(() => now.onerror?.({ error: "interrupted" }));
  };
  const speech = { getVoices: () => [{}], speak: (said) => spoken.push(said), cancel };
  Object.defineProperty(window, "speechSynthesis", { value: speech });
}
"""
SPOKEN = "() => new Promise((told) => setTimeout(() => told(spoken.map(({ text }) => text)), 20))"

# A cell's outputs in JupyterLab: a picture, its twin, the widget.
OUTPUTS = """
<div class="jp-OutputArea">
  <div class="jp-OutputArea-child"><div class="jp-RenderedImage">the picture</div></div>
  <div class="jp-OutputArea-child">
    <details open class="labkit-twin"><summary>tables</summary>numbers</details>
  </div>
  <div class="jp-OutputArea-child"><main></main></div>
</div>
"""


def quiz_state() -> dict[str, Any]:
    widget = Page("02_tensor_parallel").quiz().widget
    return state_of(widget, "quizzes", "answers", "score", "first_try")


@pytest.mark.parametrize("address", ["http://localhost/", "http://plain.example/"])
def test_two_quizzes_of_a_page_keep_their_own_choices(browser: Any, address: str):
    page = browser.new_page()
    page.route("**/*", lambda route: route.fulfill(body=TWO_PLACES, content_type="text/html"))
    page.goto(address)
    has_uuids = page.evaluate("Boolean(crypto.randomUUID)")
    assert has_uuids == (address == "http://localhost/")
    for place in ("#a", "#b"):
        render(page, "quiz", quiz_state(), place)
        page.locator(f"{place} fieldset").first.get_by_role("radio").first.check()
    for place in ("#a", "#b"):
        assert page.locator(f"{place} :checked").count() == 1


def readouts(browser: Any) -> tuple[Any, Any, Any]:
    page = blank_page(browser, body=TWO_PLACES)
    page.evaluate(SPEECH)
    for place in ("a", "b"):
        render(page, "readout", {"lines": [f"{place} one", f"{place} two"]}, f"#{place}")
    return page, page.locator("#a button"), page.locator("#b button")


def test_second_readout_takes_the_voice_and_keeps_it(browser: Any):
    page, first, second = readouts(browser)
    first.press("Enter")
    second.press("Enter")
    assert page.evaluate(SPOKEN) == ["b one", "b two"]
    assert [first.inner_text(), second.inner_text()] == ["Read aloud", "Stop"]
    second.press("Enter")
    assert page.evaluate(SPOKEN) == []
    assert second.inner_text() == "Read aloud"


def test_only_the_batch_that_is_read_changes_its_button(browser: Any):
    page, button, _ = readouts(browser)
    button.press("Enter")
    button.evaluate("button => { button.click(); button.click(); }")  # stops, starts at once
    assert page.evaluate(SPOKEN) == ["a one", "a two"]
    assert button.inner_text() == "Stop"
    page.evaluate("spoken[0].onerror({ error: 'synthesis-failed' })")
    assert button.inner_text() == "Stop"
    page.evaluate("spoken[1].onend()")
    assert button.inner_text() == "Read aloud"


def test_mark_pressed_again_is_cleared_and_escape_passes_when_nothing_is_selected(browser: Any):
    from playwright.sync_api import expect

    widget = Page("02_tensor_parallel").map().widget
    page = blank_page(browser, "map")
    render(page, "map", state_of(widget, "drawing", "mermaid", "selected"))
    page.evaluate(
        "() => { window.passed = 0;"
        " addEventListener('keydown', ({ key }) => { passed += key === 'Escape'; }); }"
    )
    mark, panel = page.get_by_role("button").first, page.locator(".labkit-panel")
    for key in ("Enter", "Space"):
        mark.press(key)
        expect(mark).to_have_attribute("aria-pressed", "true")
        expect(panel).to_contain_text("Node: ")
        mark.press(key)
        expect(mark).to_have_attribute("aria-pressed", "false")
        expect(panel).to_have_text("Nothing is selected.")
    mark.press("Enter")
    mark.press("Escape")
    expect(mark).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("passed") == 0
    mark.press("Escape")
    assert page.evaluate("passed") == 1


def test_picture_hides_and_shows_with_the_fold_after_it(browser: Any):
    from playwright.sync_api import expect

    page = blank_page(browser, body=OUTPUTS)
    picture, fold = page.get_by_text("the picture"), page.locator("summary")
    expect(picture).to_be_visible()
    render(page, "quiz", quiz_state())
    expect(picture).to_be_hidden()
    fold.press("Enter")
    expect(picture).to_be_visible()
    fold.press("Enter")
    expect(picture).to_be_hidden()
