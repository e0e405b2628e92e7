"""What an explorer leaves on paper: a finding, sentences, tables, where numbers come from."""

from __future__ import annotations

import html
from collections.abc import Sequence

from course.table import Table


def on_paper(
    headline: str,
    lines: Sequence[str],
    tables: Sequence[Table],
    origin: str,
    commands: Sequence[tuple[str, str]] = (),
) -> tuple[str, str]:
    """An explorer's static twin as (HTML, plain text)."""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    body = (
        f"<p><strong>{html.escape(headline)}</strong></p><ul>{items}</ul>"
        + "".join(table._repr_html_() for table in tables)
        + "".join(
            f"<p>{html.escape(name)}</p><pre>{html.escape(text)}</pre>" for name, text in commands
        )
        + f"<p><small>{html.escape(origin)}</small></p>"
    )
    said = "\n".join([headline, *(f"- {line}" for line in lines)])
    typed = [f"{name}\n{text}" for name, text in commands]
    return body, "\n\n".join([said, *map(str, tables), *typed, origin])
