"""What a lesson owes its readers: complete, consistent, marked properly, with computed figures."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from course import lessons
from course.lessons.content import Lesson, Option, Quiz, Reference
from course.lessons.figures import modelled_bytes, times
from course.lessons.tensor_parallel_figures import LLAMA_70B, ODD_VOCAB

ROOT = Path(__file__).parents[3]
LESSONS = [lessons.load(name) for name in lessons.names()]
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def texts(value: object) -> Iterator[str]:
    """Every text of a lesson, however deep, except where it is read (`url`) and its names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from texts(part)
    elif is_dataclass(value):
        for part in fields(value):
            if part.name not in {"url", "id", "source", "target", "name"} or is_lever(value, part):
                yield from texts(getattr(value, part.name))


def is_lever(value: object, part: object) -> bool:
    return type(value).__name__ == "Lever"


def test_a_wrong_name_lists_the_lessons_there_are():
    with pytest.raises(LookupError, match="'03_none'; there are 00_start_here, 01_collectives"):
        lessons.load("03_none")


@each_lesson
def test_a_lesson_is_called_like_its_notebook(lesson: Lesson):
    assert (ROOT / "notebooks" / f"{lesson.name}.ipynb").is_file()
    assert lessons.load(lesson.name) is lesson


@each_lesson
def test_nothing_is_left_blank(lesson: Lesson):
    assert all(text.strip() == text and text for text in texts(lesson))
    for edge in lesson.map.edges:
        for said in (edge.title, edge.protocol, edge.direction, edge.effect, edge.consequence):
            assert said.strip(), edge


@each_lesson
def test_every_wrong_option_explains_its_trap_in_its_own_words(lesson: Lesson):
    for quiz in lesson.quizzes:
        explanations = [option.explains for option in quiz.options]
        assert len(set(explanations)) == len(explanations)
        assert all(len(text.split()) >= 5 for text in explanations), quiz.id


@each_lesson
def test_the_right_option_is_not_always_at_the_same_place(lesson: Lesson):
    assert len({quiz.right for quiz in lesson.quizzes}) >= 3


@each_lesson
def test_every_node_of_the_map_is_reached(lesson: Lesson):
    on_edges = {end for edge in lesson.map.edges for end in (edge.source, edge.target)}
    assert on_edges == {node.id for node in lesson.map.nodes}


@pytest.mark.parametrize(
    ("name", "quizzes"),
    [
        ("00_start_here", 4),
        ("01_collectives", 6),
        ("02_tensor_parallel", 6),
        ("03_layout_planning", 8),
    ],
    ids=lambda x: str(x),
)
def test_a_lesson_has_enough_to_check_oneself(name: str, quizzes: int):
    lesson = lessons.load(name)
    assert len(lesson.quizzes) >= quizzes
    assert len(lesson.questions) >= 6
    assert len(lesson.pitfalls) >= 6
    assert len(lesson.references) >= 5


@each_lesson
def test_references_can_be_followed(lesson: Lesson):
    urls = [reference.url for reference in lesson.references]
    assert len(set(urls)) == len(urls)
    for reference in lesson.references:
        assert_followable(reference)


def assert_followable(reference: Reference) -> None:
    assert re.fullmatch(r"https://[a-z.]+/\S+", reference.url), reference
    arxiv = re.fullmatch(r"https://arxiv\.org/abs/(\d\d)(\d\d)\.\d{5}", reference.url)
    assert not arxiv or reference.year == 2000 + int(arxiv[1]), reference


@each_lesson
def test_only_code_and_bold_are_marked_and_every_mark_is_closed(lesson: Lesson):
    for text in texts(lesson):
        left = re.sub(r"`[^`]+`", "", text)
        left = re.sub(r"\*\*[^*]+\*\*", "", left)
        assert not re.search(r"[`*<>]|\]\(|^#", left), text


UNIT = r"\d (?:B|KiB|MiB|GiB|TiB|us|ms|s|[kMGT]?B/s)\b"


@each_lesson
def test_every_size_and_time_says_where_it_comes_from(lesson: Lesson):
    for quiz in lesson.quizzes:
        assert_labelled(" ".join(texts(quiz)))
    for text in texts(lesson):
        if text not in set(texts(lesson.quizzes)):
            assert_labelled(text)


def assert_labelled(text: str) -> None:
    if re.search(UNIT, text) and not text.endswith("?"):
        assert re.search(r"measured|captured|modelled|assumed", text), text


def test_the_course_map_has_nine_steps_in_order_and_five_levers_with_gain_and_cost():
    lesson = lessons.load("00_start_here")
    assert [node.title.split()[0] for node in lesson.map.nodes] == list("123456789")
    ids = [node.id for node in lesson.map.nodes]
    steps = [(edge.source, edge.target) for edge in lesson.map.edges]
    assert list(pairwise(ids)) == steps[: len(ids) - 1]
    assert len(lesson.levers) == 5
    assert all(lever.gain and lever.cost and lever.when for lever in lesson.levers)


def test_one_answer_says_exactly_what_a_kv_head_replica_costs():
    spec = LLAMA_70B
    weights = spec.num_layers * 2 * spec.head_dim * spec.hidden_size * 2
    cache = 2 * spec.num_layers * spec.head_dim * 2
    [answer] = [
        q.answer
        for q in lessons.load("02_tensor_parallel").questions
        if "replica of a KV head cost" in q.question
    ]
    assert modelled_bytes(weights) in answer
    assert modelled_bytes(cache) in answer
    assert modelled_bytes(8 * weights) in answer
    assert modelled_bytes(8 * cache) in answer


def test_the_odd_vocabulary_divides_by_no_power_of_two():
    assert ODD_VOCAB % 2 == 1


@pytest.mark.parametrize(("ratio", "shown"), [(25961.2, "26,000"), (9.94, "10"), (123, "120")])
def test_ratios_keep_two_digits(ratio: float, shown: str):
    assert times(ratio) == shown


SETTINGS = re.compile(
    r"`[^`]*`|TP \d+|\b[Rr]anks? \d(?: and \d)?|bf16|fp32|[Ll]lama-3\.1-(?:8|70)[Bb]"
    r"|[Qq]wen2\.5-72[Bb]|\b[HAB]\d{3}\b|INT4|FP8|DeepSeek-V3"
    r"|SmolLM2|smollm2-135m|qwen2\.5-[\d.]+b|h100_sxm/\S+|batch 1\b|[Ll]esson \d\d|^\d [A-Z]"
)
"""Digits that are names or settings: a degree, a rank, a dtype, a model, a step of the map."""


def typed_figures(source: str) -> list[str]:
    """Digits written out in a module's texts; those in `{}` are computed and do not count."""
    tree = ast.parse(source)
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        for outer in _names_and_links(node)
        for inner in ast.walk(outer)
    }
    found = []
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in skipped and re.search(r"\d", SETTINGS.sub("", node.value)):
            found.append(node.value)
    return found


def _names_and_links(node: ast.AST) -> list[ast.AST]:
    """Parts that hold no figure: docstrings, format specs, references, lesson names."""
    if isinstance(node, ast.Expr):
        return [node.value]
    if isinstance(node, ast.FormattedValue):
        return [node.format_spec] if node.format_spec else []
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reference":
        return list(node.args)
    if isinstance(node, ast.keyword) and node.arg == "name":
        return [node.value]
    return []


@pytest.mark.parametrize(
    "module",
    sorted(
        path.name
        for path in (ROOT / "course" / "lessons").glob("*.py")
        if path.name not in {"__init__.py", "content.py"} and not path.stem.endswith("_tables")
    ),
)
def test_figures_in_texts_are_computed(module: str):
    assert typed_figures((ROOT / "course" / "lessons" / module).read_text()) == []


def test_the_rule_against_typed_figures_sees_them():
    assert typed_figures('x = f"{n} GPUs read 16 GiB at TP 8"') == [" GPUs read 16 GiB at TP 8"]
    assert typed_figures('x = f"{n:.2f} GPUs on rank 3 in bf16"') == []


def test_a_quiz_with_two_right_options_is_refused():
    options = (Option("a", "b", True), Option("c", "d", True), Option("e", "f"))
    with pytest.raises(ValueError, match="exactly one right"):
        Quiz("two", "Which?", options)
