"""The two marks of a lesson's texts become HTML and vanish from plain text; all else is escaped."""

import pytest

from course.shell.marks import to_html, to_text


@pytest.mark.parametrize(
    ("text", "page", "plain"),
    [
        ("a < b & c", "a &lt; b &amp; c", "a < b & c"),
        ("`r * h // n`", "<code>r * h // n</code>", "r * h // n"),
        (
            "**two** and **three**",
            "<strong>two</strong> and <strong>three</strong>",
            "two and three",
        ),
        ("**use `x`**", "<strong>use <code>x</code></strong>", "use x"),
        ("`a ** b ** c`", "<code>a ** b ** c</code>", "a ** b ** c"),
        ("<script>", "&lt;script&gt;", "<script>"),
        ("2 * 3 * 4", "2 * 3 * 4", "2 * 3 * 4"),
    ],
)
def test_marks(text: str, page: str, plain: str):
    assert to_html(text) == page
    assert to_text(text) == plain
