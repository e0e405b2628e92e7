"""A map can be read: nothing covers a title or a label, and no curve runs through a box."""

from itertools import combinations

import pytest
from sample_lesson import MAP

from course.lessons import load
from course.lessons.content import Edge, LessonMap, Node
from course.shell.map_curves import Curve, Rect, collisions
from course.shell.map_layout import layout

MAPS = {"sample": MAP} | {n: load(n).map for n in ("00_start_here", "02_tensor_parallel")}

maps = pytest.mark.parametrize("lesson_map", MAPS.values(), ids=MAPS.keys())


def chain(*titles: str) -> LessonMap:
    nodes = tuple(Node(f"n{i}", title, "why", (i, 0)) for i, title in enumerate(titles))
    return LessonMap("chain", nodes, ())


@maps
def test_no_label_touches_a_box_a_curve_or_another_label(lesson_map: LessonMap):
    drawn = layout(lesson_map)
    labels = [label.rect for label in drawn.labels]
    assert len(labels) == len(lesson_map.edges)
    for one, other in combinations([*labels, *(box.rect for box in drawn.boxes)], 2):
        assert one.overlap(other) == 0
    for curve in drawn.curves:
        assert not any(label.contains(point) for label in labels for point in curve.points())


@maps
def test_curves_pass_boxes_by(lesson_map: LessonMap):
    drawn = layout(lesson_map)
    for edge, curve in zip(lesson_map.edges, drawn.curves, strict=True):
        ends = {edge.source, edge.target}
        others = [box.rect for box in drawn.boxes if box.id not in ends]
        assert collisions(curve, others) == 0


@maps
def test_everything_lies_on_the_drawing_and_it_fits_a_notebook(lesson_map: LessonMap):
    drawn = layout(lesson_map)
    page = Rect(0, 0, drawn.width, drawn.height)
    points = [point for curve in drawn.curves for point in curve.points()]
    for rect in [box.rect for box in drawn.boxes] + [label.rect for label in drawn.labels]:
        points += [(rect.left, rect.top), (rect.right, rect.bottom)]
    assert all(page.contains(point) for point in points)
    assert drawn.width < 850


@maps
def test_curves_begin_and_end_at_the_boxes_they_join(lesson_map: LessonMap):
    drawn = layout(lesson_map)
    rects = {box.id: box.rect for box in drawn.boxes}
    for edge, curve in zip(lesson_map.edges, drawn.curves, strict=True):
        assert rects[edge.source].grown(5).contains(curve.start)
        assert rects[edge.target].grown(5).contains(curve.end)
        assert not rects[edge.target].contains(curve.end)  # else the box hides the arrowhead


def test_long_titles_wrap_and_long_words_widen_every_box():
    drawn = layout(chain("All-reduce after attention and after the MLP", "Reduce"))
    assert len(drawn.boxes[0].lines) > 2
    wide = layout(chain("DeduplicatedDispatchCombine", "Reduce"))
    assert wide.boxes[0].lines == ("DeduplicatedDispatchCombine",)
    assert wide.boxes[0].rect.width == wide.boxes[1].rect.width > drawn.boxes[0].rect.width


def test_nodes_too_close_to_draw_are_refused_by_name():
    close = LessonMap("close", (Node("a", "A", "", (0, 0)), Node("b", "B", "", (0.5, 0))), ())
    with pytest.raises(ValueError, match="nodes 'a' and 'b' overlap"):
        layout(close)


def test_both_directions_between_two_nodes_are_two_curves():
    nodes = (Node("a", "A", "", (0, 0)), Node("b", "B", "", (1, 0)))
    there = Edge("a", "b", "there", "", "", "", "")
    back = Edge("b", "a", "back", "", "", "", "")
    one, other = layout(LessonMap("pair", nodes, (there, back))).curves
    assert abs(one.at(0.5)[1] - other.at(0.5)[1]) > 10


def test_part_of_a_curve_lies_on_the_curve():
    curve = Curve((0, 0), (10, 40), (60, -40), (80, 20))
    piece = curve.part(0.25, 0.75)
    for t in (0.0, 0.3, 1.0):
        assert piece.at(t) == pytest.approx(curve.at(0.25 + 0.5 * t))
