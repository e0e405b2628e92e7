"""Sizes on the command line: what they mean, and what is refused in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.experiments.size_list import LARGEST, parse_sizes, size_text

KIB, MIB = 2**10, 2**20


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("16KiB", [16 * KIB]),
        ("72KiB, 16kib,1024", [KIB, 16 * KIB, 72 * KIB]),
        ("1KiB:64KiB", [KIB, 4 * KIB, 16 * KIB, 64 * KIB]),
        ("1KiB:32KiB", [KIB, 4 * KIB, 16 * KIB, 32 * KIB]),
        ("1KiB:8KiB:2", [KIB, 2 * KIB, 4 * KIB, 8 * KIB]),
        ("1KiB:4KiB,1KiB,1.5MiB", [KIB, 4 * KIB, 3 * MIB // 2]),
        ("4KiB:4KiB", [4 * KIB]),
    ],
)
def test_lists_and_ranges(text: str, sizes: list[int]):
    assert list(parse_sizes(text)) == sizes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "nothing is no size; want one like 16KiB"),
        ("16KiB,", "nothing is no size"),
        ("many", "many is no size"),
        ("16KB", "16KB: sizes come in B, KiB, MiB, GiB, not in KB"),
        ("-4KiB", "-4KiB is no size"),
        ("0", "0 is no size from 1 B to 1 GiB"),
        ("2GiB", "2GiB is no size from 1 B to 1 GiB"),
        ("1.3B", "1.3B is no size from 1 B to 1 GiB in whole bytes"),
        ("64KiB:1KiB", "the range 64KiB:1KiB goes down; want 1KiB:64KiB"),
        ("1KiB:4KiB:3", "in steps of 2 or 4 times, not 3"),
        ("1KiB:2KiB:2:2", "is no range of sizes"),
        ("6", "6 B is no whole number of elements of 4 bytes; the nearest size is 4 B"),
    ],
)
def test_what_is_no_size_is_refused_in_a_sentence(text: str, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        parse_sizes(text, itemsize=4)


@given(st.integers(1, LARGEST))
def test_a_printed_size_reads_back(size: int):
    assert parse_sizes(size_text(size)) == (size,)
