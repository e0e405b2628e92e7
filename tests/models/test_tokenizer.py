"""Text and ids, whole and streamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.models.tokenizer import Tokenizer

# Captured from llama.cpp's own /tokenize (xllamacpp 2026.10.11549) on SmolLM2's GGUF; 400 further
# random strings encoded the same.
LLAMA_CPP_ENCODINGS = {
    "Hello world 12345 don't   stop\n\n  x=3.14 — café 你好 👩‍🚀": [
        19556, 905, 216, 33, 34, 35, 36, 37, 1326, 982, 256, 2853, 8866, 1792, 45, 35, 30, 33,
        36, 1841, 37366, 216, 18645, 250, 48392, 138, 15107, 235, 119, 321, 231, 10813, 244, 218,
    ],
    "The capital of France is Paris.\tIt's 2,024 km²; I'LL go. ٣٤ Ⅷ ½": [
        504, 3575, 282, 4649, 314, 7042, 30, 197, 1589, 506, 216, 34, 28, 32, 34, 36, 6381,
        19133, 43, 339, 23, 16421, 685, 30, 216, 164, 113, 164, 114, 216, 173, 223, 117, 216,
        16738,
    ],
    "def f(x):\n    return x**2  # naïve\r\n\r\n\t\tend   ": [
        1604, 275, 24, 104, 727, 472, 1003, 1792, 828, 34, 216, 907, 15486, 46494, 2738, 15290,
        197, 486, 333,
    ],
    "<|im_start|>user\nWhat is 17*23?<|im_end|>\n<|im_start|>assistant\n": [
        1, 4093, 198, 1780, 314, 216, 33, 39, 26, 34, 35, 47, 2, 198, 1, 520, 9531, 198,
    ],
    "": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer(byte_level_tokenizer: Any) -> Tokenizer:
    return Tokenizer(byte_level_tokenizer)


@pytest.mark.parametrize("text", LLAMA_CPP_ENCODINGS)
def test_rebuilt_tokenizer_encodes_as_llama_cpp_does(text: str, smollm2: Path) -> None:
    rebuilt = Tokenizer.from_directory(smollm2)
    assert rebuilt.encode(text) == LLAMA_CPP_ENCODINGS[text]
    assert rebuilt.decode(LLAMA_CPP_ENCODINGS[text], skip_special_tokens=False) == text


def test_numbers_are_split_by_digit(smollm2: Path) -> None:
    rebuilt = Tokenizer.from_directory(smollm2)
    assert [rebuilt.token(i) for i in rebuilt.encode("2026")] == ["2", "0", "2", "6"]


def test_special_tokens_are_hidden_unless_asked_for(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("the cat<|im_end|>")
    assert ids[-1] == tokenizer.token_id("<|im_end|>")
    assert tokenizer.decode(ids) == "the cat"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "the cat<|im_end|>"


def test_vocab_size_counts_added_tokens(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocab_size
    assert tokenizer.token(size - 1) is not None
    assert tokenizer.token(size) is None


def test_stream_never_shows_half_a_character(tokenizer: Tokenizer) -> None:
    text = "é 你好 👩‍🚀 the cat"
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in tokenizer.encode(text)]
    assert "" in pieces, "no token of this text ends inside a character: the test is vacuous"
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(pieces)
    assert "".join(pieces) == text
    assert stream.flush() == ""


def test_flush_gives_up_what_is_left_of_a_cut_character(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("hat 你")
    stream = tokenizer.stream()
    assert stream.push(ids[:-1]) == "hat "
    assert stream.flush() == "\N{REPLACEMENT CHARACTER}"
    assert stream.flush() == ""


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=40), data=st.data())
def test_streamed_pieces_add_up_to_the_text(
    tokenizer: Tokenizer, text: str, data: st.DataObject
) -> None:
    ids = tokenizer.encode(text)
    stream, pieces, rest = tokenizer.stream(skip_special_tokens=False), [], ids
    while rest:
        taken = data.draw(st.integers(1, len(rest)))
        pieces.append(stream.push(rest[:taken]))
        rest = rest[taken:]
    assert "".join(pieces) + stream.flush() == text


def test_damaged_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no tokenizer at .*tokenizer\.json"):
        Tokenizer.from_directory(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a readable"):
        Tokenizer.from_directory(tmp_path)
