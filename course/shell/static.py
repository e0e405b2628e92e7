"""The parts of a lesson as (HTML, plain text), readable without a kernel and without JavaScript.

Plain elements only (lists, tables, folds): GitHub strips styles and scripts.
"""

import html
from collections.abc import Iterable, Sequence

from course.lessons.content import (
    Edge,
    Guide,
    Lesson,
    LessonMap,
    Lever,
    Node,
    Pitfall,
    Question,
    Quiz,
    Reference,
)
from course.shell.marks import to_html, to_text
from course.shell.mermaid import mermaid

Static = tuple[str, str]
"""HTML and plain text."""

LETTERS = "ABCDEFGH"
_LEFT = 'style="text-align:left; vertical-align:top"'
_CHOICE_NOTE = (
    "Choose first, then open the fold: it says what is right, and which trap each other option is."
)


def gist(lesson: Lesson) -> Static:
    """The question, the gist in three lines, what the reader can decide afterwards."""
    return _joined(
        _paragraph("The question", lesson.question),
        _bullets(None, lesson.gist),
        _bullets("After this page you can decide", lesson.decisions),
    )


def guide(guide: Guide) -> Static:
    """When to prefer the technique, when to avoid it."""
    return _joined(_bullets("Prefer it when", guide.prefer), _bullets("Avoid it when", guide.avoid))


def trade_offs(lesson: Lesson) -> Static:
    """Pros and cons."""
    return _joined(_bullets("Pros (+)", lesson.pros), _bullets("Cons (-)", lesson.cons))


def pitfalls(entries: Sequence[Pitfall]) -> Static:
    """Each pitfall with symptom, cause and remedy."""
    return _facts_table(
        ("Pitfall", "What you see, why, what to do"),
        [
            (p.title, [("Symptom", p.symptom), ("Cause", p.cause), ("Remedy", p.remedy)])
            for p in entries
        ],
    )


def questions(entries: Sequence[Question]) -> Static:
    """Self-check: each answer in a fold of its own, which needs no kernel to open."""
    folds = "".join(
        f"<details><summary>{to_html(q.question)}</summary><p>{to_html(q.answer)}</p></details>"
        for q in entries
    )
    text = "\n".join(f"Q: {to_text(q.question)}\nA: {to_text(q.answer)}" for q in entries)
    return f"<p>Answer for yourself, then open the fold.</p>{folds}", text


def quizzes(entries: Sequence[Quiz]) -> Static:
    """Each quiz with its options; what is right and why in a fold under it."""
    return _joined((f"<p>{_CHOICE_NOTE}</p>", ""), *(quiz(n, q) for n, q in enumerate(entries, 1)))


def references(entries: Sequence[Reference]) -> Static:
    """What to read next, and what for."""
    items = "".join(
        f'<li><a href="{html.escape(r.url)}">{to_html(r.title)}</a>, {html.escape(r.authors)}, '
        f"{r.year}. {to_html(r.why)}</li>"
        for r in entries
    )
    text = "\n".join(
        f"- {to_text(r.title)}, {r.authors}, {r.year}, {r.url}. {to_text(r.why)}" for r in entries
    )
    return f"<ul>{items}</ul>", text


def levers(entries: Sequence[Lever]) -> Static:
    """Each lever with its gain, its cost, and when to pull it."""
    return _facts_table(
        ("Lever", "What it gains, what it costs, when to pull it"),
        [(v.name, [("Gain", v.gain), ("Cost", v.cost), ("When", v.when)]) for v in entries],
    )


def map_tables(lesson_map: LessonMap) -> Static:
    """Nodes and edges of a map as tables, and its Mermaid source."""
    source = mermaid(lesson_map)
    count = f"{len(lesson_map.nodes)} nodes, {len(lesson_map.edges)} edges"
    body, text = _joined(
        _facts_table(
            ("Node", "Why it is there"), [(n.title, _of_node(n)) for n in lesson_map.nodes]
        ),
        _facts_table(
            ("Edge", "What passes, and what follows from it"),
            [(edge_name(lesson_map, e), of_edge(e)) for e in lesson_map.edges],
        ),
    )
    fold = (
        "<details><summary>The map as Mermaid source</summary>"
        f"<pre>{html.escape(source, quote=False)}</pre></details>"
    )
    title = html.escape(lesson_map.title)
    return (
        f"<p><strong>{title}</strong> ({count})</p>{body}{fold}",
        f"{lesson_map.title} ({count})\n{text}\n\n{source}",
    )


def edge_name(lesson_map: LessonMap, edge: Edge) -> str:
    """An edge as "Source → Target: title"."""
    source, target = lesson_map.node(edge.source).title, lesson_map.node(edge.target).title
    return f"{source} → {target}: {edge.title}"


def of_edge(edge: Edge) -> list[tuple[str, str]]:
    """What an edge says, as (heading, text)."""
    return [
        ("Protocol", edge.protocol),
        ("Direction", edge.direction),
        ("Effect", edge.effect),
        ("Consequence", edge.consequence),
    ]


def _of_node(node: Node) -> list[tuple[str, str]]:
    return [("", node.why)]


def quiz(number: int, quiz: Quiz) -> Static:
    """One quiz: question, options, and in a fold what is right and why."""
    lettered = list(zip(LETTERS, quiz.options, strict=False))
    marks = [("right" if option.is_right else "wrong") for option in quiz.options]
    options = "<br>".join(f"{letter}. {to_html(o.text)}" for letter, o in lettered)
    answers = "<br>".join(
        f"<strong>{letter} is {mark}.</strong> {to_html(o.explains)}"
        for (letter, o), mark in zip(lettered, marks, strict=True)
    )
    body = (
        f"<p><strong>{number}. {to_html(quiz.question)}</strong></p><p>{options}</p>"
        f"<details><summary>Answer to {number}</summary><p>{answers}</p></details>"
    )
    lines = [f"{number}. {to_text(quiz.question)}"]
    lines += [f"   {letter}. {to_text(o.text)}" for letter, o in lettered]
    lines += [
        f"   {letter} is {mark}: {to_text(o.explains)}"
        for (letter, o), mark in zip(lettered, marks, strict=True)
    ]
    return body, "\n".join(lines)


def _paragraph(label: str, text: str) -> Static:
    return f"<p><strong>{label}:</strong> {to_html(text)}</p>", f"{label}: {to_text(text)}"


def _bullets(heading: str | None, lines: Iterable[str]) -> Static:
    lines = list(lines)
    items = "".join(f"<li>{to_html(line)}</li>" for line in lines)
    head = f"<p><strong>{html.escape(heading)}</strong></p>" if heading else ""
    text = "\n".join(f"- {to_text(line)}" for line in lines)
    return f"{head}<ul>{items}</ul>", f"{heading}:\n{text}" if heading else text


def _facts_table(
    columns: tuple[str, str], rows: Sequence[tuple[str, list[tuple[str, str]]]]
) -> Static:
    """A table of two columns, so that it stays readable on a narrow page: a name, its facts."""
    head = "".join(f"<th {_LEFT}>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr><th {_LEFT}>{to_html(name)}</th><td {_LEFT}>{_facts_html(facts)}</td></tr>"
        for name, facts in rows
    )
    text = "\n".join(
        f"- {to_text(name)}\n"
        + "\n".join(f"    {h + ': ' if h else ''}{to_text(t)}" for h, t in facts)
        for name, facts in rows
    )
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
        f"{columns[0]}: {columns[1].lower()}\n{text}",
    )


def _facts_html(facts: Iterable[tuple[str, str]]) -> str:
    return "<br>".join(
        (f"<strong>{heading}:</strong> " if heading else "") + to_html(text)
        for heading, text in facts
    )


def _joined(*parts: Static) -> Static:
    return "".join(body for body, _ in parts), "\n".join(text for _, text in parts if text)
