"""A JupyterLab of our own on a copy of the notebooks, and a browser on it."""

from __future__ import annotations

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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
JUPYTER_FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR")
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false"},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # whole page in the DOM
}
THEME = "@jupyterlab/apputils-extension/themes"
RED_OUTPUTS = ("application/vnd.jupyter.error", "application/vnd.jupyter.stderr")
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NUMBERED = re.compile(r"\[\d+\]:")


@contextmanager
def running_lab(root: Path, theme: str = "JupyterLab Light") -> Iterator[str]:
    """Address of a JupyterLab on copies of notebooks/ and exercises/ in `root`; `%s` in it stands
    for the notebook."""
    for folder in ("notebooks", "exercises"):
        if (REPOSITORY / folder).is_dir():
            shutil.copytree(REPOSITORY / folder, root / folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    places = {name: str(root / name.lower()) for name in JUPYTER_FOLDERS}
    for setting, value in {**SETTINGS, THEME: {"theme": theme}}.items():
        file = Path(places["JUPYTERLAB_SETTINGS_DIR"], f"{setting}.jupyterlab-settings")
        file.parent.mkdir(parents=True, exist_ok=True)
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
        _wait_until_up(f"{address}/api?token={token}", server)
        yield f"{address}/lab/tree/%s?token={token}"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()


def _wait_until_up(address: str, server: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert server.poll() is None, f"JupyterLab ended with exit code {server.returncode}"
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not answer within {seconds} s")


class Notebook:
    """A notebook open in a page of the browser."""

    def __init__(self, page: Any, address: str) -> None:
        from playwright.sync_api import expect

        self.page, self._expect = page, expect
        page.goto(address)
        expect(self.cells.first).to_be_visible(timeout=60_000)
        self.wait_idle()

    @property
    def cells(self) -> Any:
        return self.page.locator(".jp-NotebookPanel .jp-Cell")

    def wait_idle(self, seconds: float = 60) -> None:
        status = self.page.locator("#jp-main-statusbar")
        self._expect(status).to_contain_text("| Idle", timeout=seconds * 1000)

    def menu(self, name: str, item: str) -> None:
        self.page.get_by_role("menuitem", name=name, exact=True).click()
        self.page.get_by_role("menuitem", name=item, exact=True).click()

    def run_all(self, seconds: float) -> None:
        """Clears every output and runs every cell, to the end or to the first that fails."""
        self.menu("Edit", "Clear Outputs of All Cells")
        self.menu("Run", "Run All Cells")
        prompts = self.page.locator(".jp-CodeCell .jp-InputPrompt")
        shown_first = prompts.nth(1)  # the Colab cell before it is folded and has no prompt
        self._expect(shown_first).to_have_text(NUMBERED, timeout=60_000)
        self._expect(prompts.filter(has_text="[*]:")).to_have_count(0, timeout=seconds * 1000)
        self.wait_idle()
        red = self.page.locator(", ".join(f'[data-mime-type="{kind}"]' for kind in RED_OUTPUTS))
        assert red.all_inner_texts() == []
        self._expect(prompts.last).to_have_text(NUMBERED)

    def run_cell(self, cell: Any, source: str | None = None) -> None:
        """Runs a cell, with other text in it if `source` is given, by keyboard; waits until it has.

        JupyterLab may drop keys while it still lays out the page: then they are pressed again.
        """
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()
        for tries_left in (2, 1, 0):
            cell.locator(".cm-content").click()
            if source is not None:
                self.page.keyboard.press("Control+a")
                self.page.keyboard.insert_text(source)
            self.page.keyboard.press("Control+Enter")
            try:
                self._expect(prompt).not_to_have_text(before, timeout=20_000)
                break
            except AssertionError:
                if not tries_left:
                    raise
        self._expect(prompt).to_have_text(NUMBERED, timeout=60_000)
        self.wait_idle()

    def text(self) -> str:
        """All that the notebook's panel shows."""
        return str(self.page.locator(".jp-NotebookPanel").inner_text())

    def screenshot(self, name: str, at: Any = None) -> None:
        """Saves what is in view, scrolled to `at`, where LABKIT_SCREENSHOTS says."""
        folder = os.environ.get("LABKIT_SCREENSHOTS")
        if folder is None:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        if at is not None:
            at.scroll_into_view_if_needed()
        self.page.screenshot(path=Path(folder, f"{name}.png"))
