"""What every notebook of this repository keeps to, read from the saved files."""

import ast
import html
import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

import course.widgets
from course.bootstrap import CELL_ID, bootstrap_source, repository
from course.notebook import CHECK_TAG, tidy
from course.shell import Page
from course.widgets.twin import TWIN_CLASS, WIDGET_VIEW, Twinned

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
VARIES_TAG = "varies"
MODEL_TAG = "needs-smollm2"

CHECKED_CELLS = {
    "00_start_here": 16,
    "01_collectives": 25,
    "02_tensor_parallel": 33,
    "03_layout_planning": 69,
}
"""How many cells CI compares: laxness must not grow unnoticed."""

lessons = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list[NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def is_twin(output: NotebookNode) -> bool:
    """Whether an output is the static twin of what the course shows."""
    return TWIN_CLASS in output.get("data", {}).get("text/html", "")


def is_picture(output: NotebookNode) -> bool:
    return "image/png" in output.get("data", {})


def output_text(cell: NotebookNode, *, twins: bool = True) -> str:
    if not twins and any(map(is_twin, cell.outputs)):
        return ""
    texts = []
    for output in cell.outputs:
        data = output.get("data", {})
        texts += [output.get("text", ""), data.get("text/plain", ""), data.get("text/html", "")]
    return "\n".join(texts)


def test_there_are_notebooks_and_each_has_its_count_of_checked_cells():
    counts = {p.stem: sum(CHECK_TAG in tags(c) for c in code_cells(p)) for p in LESSONS}
    assert counts == CHECKED_CELLS


@lessons
def test_first_cell_is_the_colab_cell_in_step_with_pyproject(path: Path):
    first = read(path).cells[0]
    assert first.id == CELL_ID
    assert first.source == bootstrap_source(repository())


@lessons
def test_saved_executed_in_order_and_without_errors(path: Path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [o for cell in cells for o in cell.outputs if o.output_type == "error"]
    noise = [c.id for c in cells for o in c.outputs if o.get("name") == "stderr"]
    assert noise == []


@lessons
def test_saved_without_widget_state_and_with_a_kernel_anybody_has(path: Path):
    document = read(path)
    assert "widgets" not in document.metadata
    assert not [
        c.id for c in code_cells(path) for o in c.outputs if WIDGET_VIEW in o.get("data", {})
    ]
    assert document.metadata.kernelspec.name == "python3"
    assert path.stat().st_size < 900_000


def test_tidy_drops_widgets_and_keeps_their_twins():
    data = [{"text/html": "<p>twin</p>"}, {WIDGET_VIEW: {"model_id": "1"}}]
    outputs = [nbformat.v4.new_output("display_data", data=d) for d in data]
    cell = nbformat.v4.new_code_cell("page.map()", outputs=outputs)
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {"state": {}}})
    assert [o.data for o in tidy(notebook).cells[0].outputs] == [data[0]]
    assert "widgets" not in notebook.metadata


def shown_with_a_twin() -> set[str]:
    """The calls that show a static twin: the parts of a page, and the course's widgets."""
    calls = {f".{name}(" for name, part in vars(Page).items() if callable(part) and name[0] != "_"}
    for module in pkgutil.iter_modules(course.widgets.__path__, "course.widgets."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            if isinstance(thing, type) and issubclass(thing, Twinned) and thing is not Twinned:
                calls.add(f"{name}(")
    return calls


@lessons
def test_every_part_of_a_page_and_every_widget_was_saved_with_its_twin(path: Path):
    calls = shown_with_a_twin()
    assert {".map(", ".quiz(", ".gist("} <= calls
    for cell in code_cells(path):
        last = cell.source.rstrip().splitlines()[-1]
        if not last.endswith(";") and any(call in last for call in calls):
            twins = [o for o in cell.outputs if is_twin(o)]
            assert twins, f"{cell.id}: nothing is left without its widget"
            assert all(len(words_of(o.data["text/html"]).split()) > 10 for o in twins)


@lessons
def test_every_svg_comes_with_a_png_for_readers_that_may_not_show_it(path: Path):
    for cell in code_cells(path):
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/svg+xml" in data:
                assert {"image/png", "text/plain"} <= set(data), cell.id
                assert "<script" not in data["image/svg+xml"]


@lessons
def test_cell_ids_are_names(path: Path):
    ids = [cell.id for cell in read(path).cells]
    assert len(set(ids)) == len(ids)
    assert not [i for i in ids if not re.fullmatch(r"[a-z][a-z0-9-]+", i)]


@lessons
def test_every_output_is_either_checked_or_said_to_vary(path: Path):
    for cell in code_cells(path):
        marks = tags(cell) & {CHECK_TAG, VARIES_TAG}
        assert len(marks) == bool(cell.outputs or marks), f"{cell.id}: {marks or 'unmarked'}"
        if CHECK_TAG in marks:
            assert cell.outputs, f"{cell.id}: nothing to compare"
            shown = output_text(cell, twins=False)  # times in a lesson's texts are modelled
            assert not re.search(r"0x[0-9a-f]{6,}", shown)
            assert times_of_this_run(shown) == [], cell.id


def times_of_this_run(shown: str) -> list[str]:
    """Lines with a time that no formula made, and that was not recorded: it differs elsewhere."""
    if re.search("modelled|captured", shown) and "measured" not in shown:
        return []
    times = (line for line in shown.splitlines() if re.search(r"\d\.\d+ ?(s|ms|us)\b", line))
    return [line for line in times if not re.search("modelled|captured", line)]


def test_only_modelled_times_may_be_compared_between_machines():
    assert times_of_this_run("one step: 4.08 us [modelled]") == []
    assert times_of_this_run("steps (modelled)\nTP 2  4.84 ms\nTP 4  3.26 ms") == []
    assert times_of_this_run("one step: 4.08 us") == ["one step: 4.08 us"]
    assert times_of_this_run("modelled 4.1 ms\nmeasured 9.8 ms") == ["measured 9.8 ms"]


@lessons
def test_cells_are_short_and_wrapped_in_words(path: Path):
    cells = read(path).cells
    for before, cell in pairwise(cells):
        if cell.cell_type == "code":
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= 12, f"{cell.id}: {len(lines)} lines"
            assert before.cell_type == "markdown", f"no sentence before {cell.id}"
    assert cells[-1].cell_type == "markdown"


def numbers_in_bold(text: str) -> Iterator[str]:
    for phrase in re.findall(r"\*\*([^*]+)\*\*", text):
        yield from re.findall(r"\d[\d,]*(?:\.\d+)?", phrase)


def quotes_and_outputs(path: Path) -> Iterator[tuple[str, str, str]]:
    """(cell id, prose, what the cells above it in the same section show) of each piece of prose."""
    shown = ""
    for cell in read(path).cells:
        if cell.cell_type == "code":
            shown += output_text(cell)
            continue
        before, *sections = re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)
        yield cell.id, before, shown
        for section in sections:
            shown = ""
            yield cell.id, section, shown


@lessons
def test_numbers_quoted_in_bold_were_computed_above_in_their_section(path: Path):
    quoted = 0
    for name, prose, shown in quotes_and_outputs(path):
        for number in numbers_in_bold(prose):
            quoted += 1
            assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|,\d|\.\d)", shown), (
                f"{name} quotes {number}, which no cell above it shows"
            )
    assert quoted > 3


@lessons
def test_messages_quoted_in_code_marks_were_printed_above_in_their_section(path: Path):
    for name, prose, shown in quotes_and_outputs(path):
        for message in re.findall(r"`([^`]*\[\w+ #\d+\][^`]*)`", prose):
            assert message in shown, f"{name} quotes {message!r}, which no cell above it shows"


MAX_SPMD_LINES = 8


def logic_in(source: str) -> list[str]:
    """What a cell computes itself, beyond calling labkit or course and showing the result.

    Allowed: a function on ranks (its first parameter is `comm`) of at most eight lines, a `try`
    around a call that is meant to fail, and up to two arithmetic operations.
    """
    found = []
    tree = ast.parse(source)
    on_ranks = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node.args.args[:1]
        if node.args.args[0].arg == "comm"
        for inner in ast.walk(node)
    }
    arithmetic = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node in on_ranks:
            if node.end_lineno and node.end_lineno - node.lineno + 1 > MAX_SPMD_LINES:
                found.append(f"{node.name} has more than {MAX_SPMD_LINES} lines")
        elif node in on_ranks:
            continue
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.append(f"defines {node.name}")
        elif isinstance(node, ast.For | ast.While | ast.If | ast.Match):
            found.append(f"has a {type(node).__name__.lower()} statement")
        elif isinstance(node, ast.BinOp | ast.AugAssign):
            arithmetic += not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow)
    if arithmetic > 2:
        found.append(f"does arithmetic {arithmetic} times")
    return found


@lessons
def test_cells_hold_no_logic(path: Path):
    cells = [cell for cell in code_cells(path) if cell.id != CELL_ID]
    found = {cell.id: logic_in(cell.source) for cell in cells}
    assert {name: logic for name, logic in found.items() if logic} == {}


@pytest.mark.parametrize(
    ("source", "logic"),
    [
        ("def mean(values):\n    return sum(values) / len(values)", ["defines mean"]),
        ("class Layer:\n    pass", ["defines Layer"]),
        ("for x in range(3):\n    print(x)", ["has a for statement"]),
        ("y = a * b + c * d", ["does arithmetic 3 times"]),
        ("def f(comm):\n" + "    print(1)\n" * 8, ["f has more than 8 lines"]),
        ("def f(comm):\n    for i in range(9):\n        print(i * i - 1)\npool.run(f)", []),
        ("pool.run(lambda comm: comm.rank * 10 + 1 - 2 * 3)", []),
        ("print(2 * layers + 1, 2**20)", []),
    ],
)
def test_the_rule_against_logic_sees_it(source: str, logic: list[str]):
    assert logic_in(source) == logic


@lessons
def test_a_model_named_by_tag_is_named_in_words_too(path: Path):
    needing = [c.id for c in code_cells(path) if MODEL_TAG in tags(c)]
    words = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown")
    assert not needing or "tiny" in words


@lessons
def test_links_between_notebooks_lead_somewhere(path: Path):
    words = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown")
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", words)
    assert [t for t in targets if not (path.parent / t).exists()] == []


def test_the_checked_tags_are_those_nbval_knows():
    from nbval.plugin import metadata_tags

    assert CHECK_TAG in metadata_tags
    used = Counter(tag for path in LESSONS for cell in code_cells(path) for tag in tags(cell))
    assert set(used) <= {CHECK_TAG, VARIES_TAG, MODEL_TAG}


@lessons
def test_i8_exported_page_is_readable_without_widgets(path: Path):
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter(template_name="lab", embed_images=False).from_filename(str(path))
    assert WIDGET_VIEW not in page
    words = words_of(page)
    for cell in code_cells(path):
        for output in cell.outputs:
            data = output.get("data", {})
            for line in re.findall(r"<text[^>]*>([^<]*)</text>", data.get("image/svg+xml", "")):
                said = words + data["text/plain"]
                assert html.unescape(line) in said, f"{cell.id}: {line!r} of the picture is lost"
            if "image/png" not in data:
                shown = words_of(data.get("text/html", "")) or data.get("text/plain", "")
                for word in (output.get("text") or shown).split():
                    assert word in words, f"{cell.id}: {word!r} is not in the exported page"


@lessons
def test_i8_every_image_is_followed_by_its_numbers(path: Path):
    for cell in code_cells(path):
        for index, output in enumerate(cell.outputs):
            if is_picture(output):
                words = next((o for o in cell.outputs[index:] if not is_picture(o)), NotebookNode())
                data = words.get("data", {})
                assert "text/html" in data, f"{cell.id}: an image without its numbers"
                assert re.search(r"\d", data["text/plain"])


def words_of(page: str) -> str:
    """What a reader sees of an HTML page, near enough."""
    return html.unescape(re.sub(r"<[^>]+>", " ", page))
