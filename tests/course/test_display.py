"""Tables and pictures read as text, and colours read on light and dark pages."""

import pytest

from course.labels import Label
from course.palette import INK, SERIES, STYLE, contrast
from course.picture import curves, stacked_bars
from course.table import Table

WHITE, LAB_DARK = "#ffffff", "#111111"


@pytest.mark.parametrize("background", [WHITE, LAB_DARK])
def test_every_colour_is_readable_on_light_and_dark(background: str):
    assert min(contrast(colour, background) for colour in SERIES) >= 3.0
    assert contrast(INK, background) >= 4.0
    assert STYLE["figure.facecolor"] == "none"


def test_contrast_of_black_on_white_is_21():
    assert contrast("#000000", WHITE) == pytest.approx(21.0)


def test_table_shows_the_same_cells_as_text_and_html():
    table = Table(("rank", "bytes"), [("rank 0", 1_048_576), ("a<b", 12)], caption="Weights")
    assert "1,048,576" in str(table)
    assert str(table).startswith("Weights\n")
    page = table._repr_html_()
    assert "1,048,576" in page
    assert "a&lt;b" in page
    assert '<td style="text-align:right">12</td>' in page


def test_table_refuses_a_ragged_row():
    with pytest.raises(ValueError, match="3 cells for 2 columns"):
        Table(("a", "b"), [(1, 2, 3)])


def test_picture_carries_its_numbers_as_text():
    picture = stacked_bars(
        "Rank 1 holds the most",
        {"MLP": [1024.0, 2048.0], "norms": [512.0, 512.0]},
        ["rank 0", "rank 1"],
        "B",
        Label.MEASURED,
    )
    assert picture.png.startswith(b"\x89PNG")
    assert "rank 1: 2,560 B (2.5 KiB) = 2,048 B (2 KiB) MLP + 512 B norms" in picture.text
    assert "(measured)" in picture.text
    assert "2,560 B (2.5 KiB)" in picture._repr_html_()


def test_picture_is_displayed_as_image_and_as_numbers(monkeypatch: pytest.MonkeyPatch):
    shown: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, **how: shown.append(data))
    stacked_bars("Title", {"MLP": [1.0]}, ["a"], "B", Label.ASSUMED)._ipython_display_()
    image, numbers = shown
    assert set(image) == {"image/png", "text/plain"}
    assert "1 B MLP" in numbers["text/html"]
    assert "Title" in numbers["text/html"]


def test_picture_refuses_a_part_of_another_length():
    with pytest.raises(ValueError, match="1 values for 2 bars"):
        stacked_bars("t", {"MLP": [1.0]}, ["a", "b"], "B", Label.MEASURED)


def test_curves_name_their_points_and_units():
    picture = curves(
        "Larger takes longer",
        {"2 ranks": [(1024, 1e-4), (1 << 20, 8e-4)]},
        x=("payload", "B"),
        y=("time", "s"),
        label=Label.MODELLED,
    )
    assert "1,048,576 B (1 MiB) -> 800 us" in picture.text
    assert "(modelled)" in picture.text


def test_same_picture_is_drawn_to_the_same_bytes():
    drawn = [stacked_bars("t", {"MLP": [1.0]}, ["a"], "B", Label.ASSUMED).png for _ in range(2)]
    assert drawn[0] == drawn[1]
