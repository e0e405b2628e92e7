"""Output of ranks as the caller shows it: never at the price of the result, never without end."""

from __future__ import annotations

import io
import sys

import pytest

from labkit.ranks.comm import Comm
from labkit.ranks.report import RankError


class Closed(io.TextIOBase):
    """A stdout that takes nothing."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise BrokenPipeError("nobody reads")


def say(comm: Comm, text: str) -> int:
    print(text)
    return comm.rank


def lines_of(shown: str) -> list[str]:
    return [line.removeprefix("[rank 0] ") for line in shown.splitlines()]


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", r"\xe9 \u20ac"), ("latin-1", "é \\u20ac"), ("utf-8", "é €")]
)
def test_what_stdout_cannot_encode_is_escaped(
    pool, monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str
) -> None:
    raw = io.BytesIO()
    with monkeypatch.context() as patch:
        stdout = io.TextIOWrapper(raw, encoding=encoding)
        patch.setattr(sys, "stdout", stdout)
        results = pool(2).run(say, "é €")
    assert results == [0, 1]
    assert raw.getvalue().decode(encoding) == f"[rank 0] {shown}\n[rank 1] {shown}\n"


def test_stdout_that_fails_costs_neither_the_result_nor_the_error(
    pool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(comm: Comm) -> None:
        print("words")
        raise ValueError("boom")

    monkeypatch.setattr(sys, "stdout", Closed())
    assert pool(2).run(say, "words") == [0, 1]
    said = capsys.readouterr().err
    assert said == "what the ranks printed could not be shown: BrokenPipeError('nobody reads')\n"
    with pytest.raises(RankError, match="boom"):
        pool(2).run(fail)
    monkeypatch.setattr(sys, "stdout", None)
    assert pool(2).run(say, "words") == [0, 1]


def test_long_line_is_cut_in_the_middle(pool, capsys: pytest.CaptureFixture[str]) -> None:
    pool(1).run(say, "a" * 1_000_000 + "b" * 1_000_000)
    (line,) = lines_of(capsys.readouterr().out)
    assert len(line) < 6000
    assert line.startswith("aaa")
    assert line.endswith("bbb")
    assert " ... 1995000 characters not shown ... " in line


def test_many_wide_lines_are_cut_in_the_middle(pool, capsys: pytest.CaptureFixture[str]) -> None:
    pool(1).run(say, "\n".join(f"{n} " + "x" * 1000 for n in range(1500)))
    text = capsys.readouterr().out
    lines = lines_of(text)
    assert len(text) < 250_000
    assert lines[0].startswith("0 xxx")
    assert lines[-1].startswith("1499 xxx")
    (left_out,) = (line for line in lines if "not shown" in line)
    assert left_out == f"... {1500 - (len(lines) - 1)} lines not shown ..."


def test_output_within_bounds_is_shown_whole(pool, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join("y" * 90 for _ in range(2000))
    pool(1).run(say, text)
    assert lines_of(capsys.readouterr().out) == text.split("\n")
