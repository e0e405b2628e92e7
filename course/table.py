"""A small table for notebook cells: text for terminals and exports, HTML for the page."""

import html
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows under named columns. Cells are shown by `str`; numbers are set flush right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"row {row!r} has {len(row)} cells for {len(self.columns)} columns"
                )

    def _texts(self) -> list[list[str]]:
        return [[_text(cell) for cell in row] for row in self.rows]

    def _flush_right(self) -> list[bool]:
        return [
            bool(self.rows) and all(isinstance(row[i], int | float) for row in self.rows)
            for i in range(len(self.columns))
        ]

    def __str__(self) -> str:
        lines = [list(self.columns), *self._texts()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        right = self._flush_right()

        def laid_out(line: Sequence[str]) -> str:
            cells = zip(line, widths, right, strict=True)
            return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in cells).rstrip()

        rule = "  ".join("-" * width for width in widths)
        head = [self.caption] if self.caption else []
        return "\n".join([*head, laid_out(lines[0]), rule, *map(laid_out, lines[1:])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        align = ["right" if right else "left" for right in self._flush_right()]

        def line(cells: Sequence[str], tag: str) -> str:
            styled = zip(cells, align, strict=True)
            return "".join(
                f'<{tag} style="text-align:{side}">{html.escape(text)}</{tag}>'
                for text, side in styled
            )

        body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in self._texts())
        caption = (
            f'<caption style="text-align:left">{html.escape(self.caption)}</caption>'
            if self.caption
            else ""
        )
        head = f"<thead><tr>{line(self.columns, 'th')}</tr></thead>"
        return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _text(cell: object) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}"
