"""The decode benchmark's result as text."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bar import Bar
from benchmarks.bars import BATCHES, DTYPES
from benchmarks.rows import Row, find, speedup
from benchmarks.sides import BOUND, OURS, OURS_GLOO, TRANSFORMERS

HEADINGS = ("side", "ranks", "threads", "tokens/s", "low-high", "x transformers", "same tokens")


def table(rows: Sequence[Row]) -> str:
    """One block for each dtype and batch size."""
    blocks = []
    for dtype in DTYPES:
        for batch in BATCHES:
            chosen = [row for row in rows if (row.dtype, row.batch) == (dtype, batch)]
            if chosen:
                blocks.append(f"{dtype}, batch {batch}\n{_block(chosen, rows)}")
    return "\n\n".join(blocks)


def rank_sentences(rows: Sequence[Row]) -> list[str]:
    """What tensor parallelism gives or costs on this machine, against one rank."""
    sentences = []
    for dtype in DTYPES:
        for batch in BATCHES:
            one = find(rows, OURS, dtype, batch)
            for side, ranks in ((OURS, 2), (OURS_GLOO, 2), (OURS, 3)):
                row = find(rows, side, dtype, batch, ranks=ranks)
                ratio = speedup(row, one)
                if row is not None and ratio is not None:
                    verdict = "slower" if ratio < 1 else "faster"
                    sentences.append(
                        f"{dtype}, batch {batch}: {ranks} ranks over {row.settings} decode at "
                        f"{ratio:.2f} times the speed of one rank: {verdict}"
                    )
    return sentences


def summary(rows: Sequence[Row], found: Sequence[Bar]) -> list[str]:
    """What more ranks give, bars, and the settings and failures of each side, line by line."""
    settings = sorted({f"{row.side}: {row.settings}" for row in rows if row.settings})
    errors = [
        f"FAILED {row.side} x{row.ranks}, {row.dtype}, batch {row.batch}: {row.error}"
        for row in rows
        if row.error
    ]
    return [*rank_sentences(rows), "", *map(str, found), "", *settings, *errors]


def full_report(rows: Sequence[Row], found: Sequence[Bar]) -> str:
    """Table and summary."""
    return "\n".join([table(rows), "", *summary(rows, found)])


def _block(chosen: Sequence[Row], rows: Sequence[Row]) -> str:
    cells = [HEADINGS, *(_cells(row, rows) for row in chosen)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    )


def _cells(row: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    name, ranks, threads = row.side, str(row.ranks), str(row.threads)
    if row.tokens_per_second is None or row.spread is None:
        return name, ranks, threads, "failed", "", "", ""
    baseline = find(rows, TRANSFORMERS, row.dtype, row.batch, threads=row.threads)
    ratio = speedup(row, baseline)
    low, high = row.spread
    return (
        name,
        ranks,
        threads,
        f"{row.tokens_per_second:.1f}",
        f"{low:.1f}-{high:.1f}",
        "" if ratio is None else f"{ratio:.2f}",
        "" if row.side == BOUND else _agreement(row),
    )


def _agreement(row: Row) -> str:
    found = row.agreement
    if found is None:
        return "?"
    text = f"{found.agreeing}/{found.prompts}"
    if found.first_divergence is None:
        return text
    return f"{text} (from {found.first_divergence})"
