"""Widgets in a bare page: their real JavaScript on a stand-in for anywidget's model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from course.widgets.browser_code import javascript, stylesheet

# What a page needs of anywidget: a model with get, set, on, off and save_changes, and one module
# for each model.
RENDER = """
async ([code, state, place]) => {
  const listeners = {};
  const fire = (name) => (listeners[`change:${name}`] ?? []).forEach((heard) => heard());
  window.model = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; fire(name); },
    on: (event, heard) => (listeners[event] ??= []).push(heard),
    off: () => {},
    save_changes: () => { window.saved = { ...state }; },
  };
  const module = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  module.default.render({ model: window.model, el: document.querySelector(place) });
}
"""


def blank_page(browser: Any, style: str = "", body: str = "<main></main>") -> Any:
    """A page with the widgets' styles and this body, ready for `render`."""
    page = browser.new_page()
    page.set_content(f"<style>{stylesheet(style)}</style>{body}")
    return page


def render(page: Any, name: str, state: Mapping[str, Any], place: str = "main") -> None:
    """Renders the widget of `<name>.js` in the element `place`.

    `window.model` is then its model, and `window.saved` what it saved last.
    """
    page.evaluate(RENDER, [javascript(name), json.loads(json.dumps(state)), place])


def state_of(widget: Any, *names: str) -> dict[str, Any]:
    """These traits of a widget, as its page gets them."""
    return {name: getattr(widget, name) for name in names}
