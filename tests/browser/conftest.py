"""A browser, and a JupyterLab for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import QUIET, Notebook, running_lab

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser_path() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        message = f"none of the browsers {', '.join(BROWSERS)} is installed"
        if os.environ.get("LABKIT_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_lab(tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture
def browser(browser_path: str, tmp_path: Path) -> Iterator[Any]:
    """A browser of 1280 by 1600 px with a profile of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=browser_path,
            args=QUIET,
            viewport={"width": 1280, "height": 1600},
        )
        yield context
        context.close()


@pytest.fixture
def opened(lab: str, browser: Any) -> Callable[[str], Notebook]:
    """`opened("notebooks/00_start_here.ipynb")`: that notebook in the browser."""
    return lambda notebook: Notebook(browser.new_page(), lab % notebook)
