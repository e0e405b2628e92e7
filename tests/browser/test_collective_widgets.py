"""The ring stepper and the collective sketch in a browser, moved by keyboard."""

import re
from typing import Any

import pytest
from widget_page import blank_page, render, state_of

from course.widgets.collective_sketch import CollectiveSketch
from course.widgets.ring_stepper import RingStepper
from labkit.plan.collectives import Ring
from labkit.ranks.algorithm_record import Record, StepRecord, merge_records

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def two_rank_ring() -> StepRecord:
    records = []
    for rank in (0, 1):
        record, other = Record(), 1 - rank
        record.begin("ring all-reduce", rank, 2, 2, [0, 1])
        record.step("reduce-scatter").sent(rank, other).added(other, other)
        record.step("all-gather").sent(other, other).kept(rank, other)
        records.append(record)
    return merge_records(records)


def test_stepper_steps_plays_and_pauses_by_keyboard(browser: Any):
    from playwright.sync_api import expect

    page = blank_page(browser, "stepper")
    page.clock.install()  # time stands still but for `run_for`
    page.emulate_media(reduced_motion="reduce")
    widget = RingStepper(two_rank_ring()).make_widget()
    render(page, "stepper", state_of(widget, "run", "position"))
    slider, status = page.get_by_role("slider", name="Step"), page.get_by_role("status")
    back, following = (page.get_by_role("button", name=name) for name in ("Back", "Next"))
    play = page.get_by_role("button", name=re.compile("Play|Pause"))
    finished = page.locator("td > .labkit-hold-whole")
    dots = page.locator(".labkit-dots circle")
    expect(status).to_have_text("Before the first step: 0 of 4 places hold a finished sum.")
    back.press("Enter")
    expect(slider).to_have_attribute("aria-valuetext", "start")

    following.press("Enter")
    expect(status).to_contain_text("Step 1 of 2, reduce-scatter")
    expect(slider).to_have_attribute("aria-valuetext", "step 1 of 2, reduce-scatter")
    expect(finished).to_have_count(2)
    expect(page.locator("li")).to_have_text(
        [
            "rank 0 to rank 1: chunk 0 (values of rank 0), added",
            "rank 1 to rank 0: chunk 1 (values of rank 1), added",
        ]
    )
    expect(page.locator("td").filter(has_text="new")).to_have_count(2)
    expect(page.locator(".labkit-message")).to_have_count(2)

    following.press("ArrowRight")
    expect(finished).to_have_count(4)
    expect(following).to_have_attribute("aria-disabled", "true")
    following.press("Enter")
    expect(slider).to_have_value("2")

    play.press("Space")
    expect(play).to_have_text("Pause")
    expect(slider).to_have_value("1")
    play.press("Space")
    page.clock.run_for(5_000)
    expect(slider).to_have_value("1")
    play.press("Space")
    expect(slider).to_have_value("2")
    expect(play).to_have_text("Play again")
    expect(play).to_be_focused()
    slider.press("Home")
    expect(finished).to_have_count(0)
    page.evaluate("model.set('position', 1)")
    expect(finished).to_have_count(2)
    expect(dots).to_have_count(0)

    page.emulate_media(reduced_motion="no-preference")
    following.press("Enter")
    expect(dots).to_have_count(2)
    expect(finished).to_have_count(2)
    page.clock.run_for(1_000)
    expect(dots).to_have_count(0)
    expect(finished).to_have_count(4)


def test_sketch_names_each_regime_marks_the_crossing_and_overlays_by_keyboard(browser: Any):
    from playwright.sync_api import expect

    widget = CollectiveSketch({"gloo": Ring(150e-6, 2e9)}).make_widget()
    page = blank_page(browser, "explorer")
    page.set_viewport_size({"width": 800, "height": 1200})
    render(page, "explorer", state_of(widget, "controls", "choice", "answers"))

    def answer() -> None:
        """What the kernel does with a move."""
        widget.choice = page.evaluate("window.saved.choice")
        page.evaluate("answers => model.set('answers', answers)", widget.answers)

    verdict, chart = page.locator(".labkit-verdict"), page.locator(".labkit-chart")
    expect(verdict).to_have_text("✓ The link is slow, but the split still wins.")
    expect(chart.locator("text", has_text="crossing: batch")).to_be_visible()
    expect(chart.locator("text", has_text="you are here")).to_be_visible()
    expect(chart).to_have_attribute("aria-label", re.compile("stops paying at a batch"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 800

    scaling = page.get_by_label("Compute that divides")
    scaling.press("Home")
    expect(verdict).to_have_text("✗ The split hurts.")
    expect(chart.locator(".labkit-mark")).to_have_count(0)
    answer()
    scaling.press("End")
    answer()
    page.get_by_role("combobox", name="Link").press("ArrowUp")
    expect(verdict).to_have_text("✓ The split helps.")
    answer()
    expect(page.locator("tbody")).not_to_contain_text("gloo")
    page.get_by_role("combobox", name="Lay over it").press("ArrowDown")
    expect(page.locator("tbody")).to_contain_text("gloo")
    expect(chart.locator("text", has_text="gloo")).to_be_visible()
