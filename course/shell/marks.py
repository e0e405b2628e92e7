"""The two marks that a lesson's texts may use, `code` and **bold**, made HTML or taken off."""

import html
import re

_MARK = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*")


def to_html(text: str) -> str:
    """The text as safe HTML with its marks as <code> and <strong>.

    >>> to_html("**Sum** `x < y`")
    '<strong>Sum</strong> <code>x &lt; y</code>'
    """
    pieces, end = [], 0
    for match in _MARK.finditer(text):
        pieces.append(html.escape(text[end : match.start()], quote=False))
        code, bold = match.groups()
        pieces.append(
            f"<code>{html.escape(code)}</code>" if code else f"<strong>{to_html(bold)}</strong>"
        )
        end = match.end()
    return "".join(pieces) + html.escape(text[end:], quote=False)


def to_text(text: str) -> str:
    """The text without its marks.

    >>> to_text("**Sum** `x < y`")
    'Sum x < y'
    """
    return _MARK.sub(lambda match: match[1] or to_text(match[2]), text)
