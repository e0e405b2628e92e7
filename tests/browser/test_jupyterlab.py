"""A reader's first minutes: JupyterLab in a browser, notebook 00 run from top to bottom."""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NOTEBOOK = "notebooks/00_start_here.ipynb"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
JUPYTER_FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR")
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false"},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # whole page in the DOM
}
RED_OUTPUTS = ("application/vnd.jupyter.error", "application/vnd.jupyter.stderr")
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
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
    """Address of a JupyterLab of our own on a copy of the notebooks."""
    root = tmp_path_factory.mktemp("lab")
    shutil.copytree(REPOSITORY / "notebooks", root / "notebooks")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    places = {name: str(root / name.lower()) for name in JUPYTER_FOLDERS}
    for setting, value in SETTINGS.items():
        file = Path(places["JUPYTERLAB_SETTINGS_DIR"], f"{setting}.jupyterlab-settings")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(value))
    log = (root / "server.log").open("w")
    server = subprocess.Popen(
        [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
            "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}",
        ],
        env={**os.environ, **places},
        stdout=log,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_up(f"{address}/api?token={token}", server)
        yield f"{address}/lab/tree/{NOTEBOOK}?token={token}"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()


def wait_until_up(address: str, server: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert server.poll() is None, f"JupyterLab ended with exit code {server.returncode}"
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not answer within {seconds} s")


def test_notebook_00_runs_to_the_end_in_a_browser(lab: str, browser_path: str, tmp_path: Path):
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=browser_path,
            args=QUIET,
            viewport={"width": 1280, "height": 1600},
        )
        page = browser.new_page()
        page.goto(lab)
        cells = page.locator(".jp-NotebookPanel .jp-Cell")
        expect(cells.first).to_be_visible(timeout=60_000)
        expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=60_000)

        page.get_by_role("menuitem", name="Edit", exact=True).click()
        page.get_by_role("menuitem", name="Clear Outputs of All Cells").click()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        prompts = page.locator(".jp-CodeCell .jp-InputPrompt")
        shown_first = prompts.nth(1)  # the Colab cell before it is folded and has no prompt
        expect(shown_first).to_have_text(re.compile(r"\[\d+\]:"), timeout=60_000)
        expect(prompts.filter(has_text="[*]:")).to_have_count(0, timeout=180_000)
        expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=60_000)

        red = page.locator(", ".join(f'[data-mime-type="{kind}"]' for kind in RED_OUTPUTS))
        assert red.all_inner_texts() == []
        expect(prompts.last).to_have_text(re.compile(r"\[\d+\]:"))
        text = page.locator(".jp-NotebookPanel").inner_text()
        images = page.locator(".jp-OutputArea img")
        widths = [image.evaluate("image => image.naturalWidth") for image in images.all()]

        shots = Path(os.environ.get("LABKIT_SCREENSHOTS", tmp_path))
        shots.mkdir(parents=True, exist_ok=True)
        cells.first.scroll_into_view_if_needed()
        page.screenshot(path=shots / "notebook_00_top.png")
        images.last.scroll_into_view_if_needed()
        page.screenshot(path=shots / "notebook_00_figure.png")
        browser.close()

    assert "[rank 2] I am rank 2 of 3" in text
    assert "[6, 6, 6]" in text
    assert widths
    assert min(widths) > 300
