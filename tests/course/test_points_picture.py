"""Pictures of points keep their numbers as text, name what stands out, and are light to carry."""

import io

from PIL import Image

from course.figure import new_figure, png_of
from course.labels import Label
from course.points_picture import Spot, parity, spots


def test_every_point_is_in_the_text_with_both_labels():
    picture = parity("On the line", {"TP 2": [(0.01, 0.012), (0.02, 0.02)]}, unit="s", band=0.1)
    assert "TP 2: 10 ms -> 12 ms, 20 ms -> 20 ms" in picture.text
    assert f"recorded {Label.CAPTURED} -> predicted {Label.MODELLED}" in picture.text


def test_what_nothing_beats_is_said_of_those_alone():
    points = [Spot("TP 8", 1.0, 2.0, True), Spot("TP 4", 2.0, 1.0, False)]
    picture = spots("A line", points, x=("time", "s"), y=("rate", ""), label=Label.MODELLED)
    assert "TP 8: 1 s, 2, beaten by none" in picture.text
    assert "TP 4: 2 s, 1\n" in picture.text


def test_a_figure_is_a_png_of_few_colours_that_keeps_its_see_through_ground():
    figure = new_figure(1.0)
    figure.patch.set_alpha(0.0)
    figure.text(0.5, 0.5, "text", color="#0072B2")
    image = Image.open(io.BytesIO(png_of(figure)))
    assert image.mode == "P"
    pixels = image.convert("RGBA")
    assert pixels.getpixel((0, 0))[3] == 0
    assert len(pixels.getcolors(10_000)) <= 64
    assert png_of(figure) == png_of(figure)
