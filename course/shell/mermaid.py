"""A lesson's map as a Mermaid flowchart, to paste into Markdown, an issue or a wiki."""

import re

from course.lessons.content import LessonMap


def mermaid(lesson_map: LessonMap) -> str:
    """Mermaid source: every node by its title, every edge by its title, from source to target."""
    lines = ["flowchart LR"]
    lines += [f'    {_name(node.id)}["{_quoted(node.title)}"]' for node in lesson_map.nodes]
    lines += [
        f'    {_name(edge.source)} -->|"{_quoted(edge.title)}"| {_name(edge.target)}'
        for edge in lesson_map.edges
    ]
    return "\n".join(lines) + "\n"


def _name(node_id: str) -> str:
    """A node's name in Mermaid: prefixed, since a bare `end` would close a block."""
    return "n_" + re.sub(r"\W", "_", node_id)


def _quoted(text: str) -> str:
    """Text for a quoted Mermaid label: what would end it or start Markdown as entity codes."""
    for character, code in (("#", "#35;"), ('"', "#quot;"), ("`", "#96;")):
        text = text.replace(character, code)
    return text.replace("**", "")
