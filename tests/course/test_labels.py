"""Every number of the course carries where it comes from, visibly and not by colour alone."""

import doctest

import pytest

from course import labels
from course.labels import Label, Number, assumed, captured, measured, modelled, quantity


def test_examples_in_docstrings_hold():
    assert doctest.testmod(labels).failed == 0


@pytest.mark.parametrize("label", list(Label))
def test_label_word_is_visible_in_every_representation(label: Label):
    number = Number(3.0, "ms", label, "a source")
    assert label.value in str(number)
    assert label.value in repr(number)
    assert label.value in number._repr_html_()
    assert "a source" in repr(number)
    assert label.meaning


def test_labels_differ_by_word_and_by_shape():
    assert len({label.symbol for label in Label}) == len(Label) == 4


def test_number_without_source_is_refused():
    with pytest.raises(ValueError, match="needs a source"):
        modelled(1.0, "s", " ")


def test_unknown_label_is_refused():
    with pytest.raises(ValueError, match="guessed"):
        Number(1.0, "s", "guessed", "nobody")  # type: ignore[arg-type]


def test_constructors_set_their_label():
    made = [measured(1), captured(1, "", "x"), modelled(1, "", "x"), assumed(1, "", "x")]
    assert [number.label for number in made] == list(Label)


def test_source_is_escaped_in_html():
    assert "<b>" not in measured(1, "", "<b>")._repr_html_()


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.0, "s", "0 s"),
        (2.5e-6, "s", "2.5 us"),
        (3e-10, "s", "0.3 ns"),
        (61.0, "s", "61 s"),
        (512, "B", "512 B"),
        (1 << 20, "B", "1,048,576 B (1 MiB)"),
        (25e9, "B/s", "25 GB/s"),
        (14.5, "tokens/s", "14.5 tokens/s"),
        (1234567, "", "1,234,567"),
    ],
)
def test_quantities_are_scaled_and_keep_their_unit(value: float, unit: str, expected: str):
    assert quantity(value, unit) == expected
