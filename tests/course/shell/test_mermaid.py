"""A map's Mermaid source has every node and edge, and nothing in a title can break it."""

import re

from sample_lesson import MAP

from course.lessons.content import Edge, LessonMap, Node
from course.shell.mermaid import mermaid


def test_every_node_and_edge_is_there_once():
    lines = mermaid(MAP).splitlines()
    assert lines[0] == "flowchart LR"
    assert len(lines) == 1 + len(MAP.nodes) + len(MAP.edges)
    assert '    n_sampler["Sampler (picks 1 of 49,152 ids)"]' in lines
    assert '    n_dispatch -->|"expert outputs, weighed"| n_router' in lines


def test_titles_and_ids_that_mean_something_to_mermaid_are_made_harmless():
    nodes = (Node("end", 'say "x" `y` #1', "", (0, 0)), Node("kv-heads", "**b**", "", (1, 0)))
    edge = Edge("end", "kv-heads", 'a "quoted" title', "", "", "", "")
    source = mermaid(LessonMap("t", nodes, (edge,)))
    assert 'n_end["say #quot;x#quot; #96;y#96; #35;1"]' in source
    assert 'n_kv_heads["b"]' in source
    assert not re.search(r"^\s*end\b", source, re.MULTILINE)
    assert all(line.count('"') == 2 for line in source.splitlines()[1:])
