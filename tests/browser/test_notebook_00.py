"""A reader's first minutes: JupyterLab in a browser, notebook 00 run from top to bottom."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_notebook_00_runs_to_the_end_in_a_browser(opened):
    notebook = opened("notebooks/00_start_here.ipynb")
    notebook.run_all(seconds=180)
    images = notebook.page.locator(".jp-OutputArea img")
    widths = [image.evaluate("image => image.naturalWidth") for image in images.all()]
    notebook.screenshot("notebook_00_top", notebook.cells.first)
    notebook.screenshot("notebook_00_figure", images.last)
    text = notebook.text()
    assert "[rank 2] I am rank 2 of 3" in text
    assert "[6, 6, 6]" in text
    assert widths
    assert min(widths) > 300
