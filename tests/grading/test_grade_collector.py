"""Functions collected from a notebook's cells, and what is told about these."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import pytest

from course.grading import collector
from course.grading.cell_definitions import imports_and_definitions
from course.grading.cell_remarks import notes_told, remarks, why_missing
from course.grading.collection import Collection, cell_name
from course.grading.collector import MOST_KERNELS, collect
from course.grading.function_bytes import load_function
from course.grading.handover import Taken
from course.grading.kernel_session import CellEnd
from course.grading.own_modules import MOST_FILES, read_modules
from course.grading.submission import Notebook
from course.grading.workshop import Workshop

NOTEBOOK = Notebook(
    (
        "import torch",
        "# YOUR CODE\n\ndef f(comm):\n    return 1",
        "f(1)",
        "def g(comm): return 2",
        "g(1)",
        "def f(comm): return 3",
    ),
    None,
)


def test_a_cell_is_known_by_its_number_and_first_line_of_code():
    assert cell_name(NOTEBOOK, 1) == "code cell 2 (`def f(comm):`)"
    long = Notebook(("x = " + "1 + " * 30 + "1",), None)
    assert len(cell_name(long, 0)) < 65
    assert cell_name(Notebook(("# only a comment",), None), 0) == "code cell 1 (`# only a comment`)"


def test_an_exercise_is_told_of_its_own_cells_and_the_notebook_of_all():
    collection = Collection(troubles={0: "broke", 3: "raised A", 4: "raised B"})
    own = "code cell 4 (`def g(comm): return 2`) raised A"
    assert remarks(NOTEBOOK, collection, "g") == [own]
    assert remarks(NOTEBOOK, collection, "f") == []
    assert notes_told(NOTEBOOK, collection) == [
        "code cell 1 (`import torch`) broke",
        own,
        "code cell 5 (`g(1)`) raised B",
    ]


def test_a_missing_set_up_cell_is_told_once():
    unnamed = "raised NameError: name '{}' is not defined"
    collection = Collection(troubles={1: unnamed.format("torch"), 4: unnamed.format("check")})
    assert notes_told(NOTEBOOK, collection) == [
        "The cell that imports torch and check is missing or was not run, so code cells 2, 5 "
        "raised NameError"
    ]


def test_a_missing_function_says_which_cell_should_have_defined_it():
    collection = Collection(troubles={3: "raised SyntaxError: invalid syntax"})
    assert why_missing(NOTEBOOK, collection, "g") == (
        "code cell 4 (`def g(comm): return 2`), which defines `g`, "
        "raised SyntaxError: invalid syntax"
    )
    assert why_missing(NOTEBOOK, collection, "h") == "the notebook defines no function `h`"
    assert "code cell 6" in why_missing(NOTEBOOK, Collection(), "f")


@pytest.mark.parametrize(
    ("source", "is_checked", "told"),
    [
        (5, False, "the last one counts"),
        (1, False, "the one of code cell 2 counts"),
        (2, True, "the one that code cell 3 checks counts"),
        (None, False, "what it was at the end counts"),
    ],
)
def test_of_several_definitions_the_one_that_counts_is_told(source, is_checked, told):
    collection = Collection(functions={"f": Taken(b"f", is_checked=is_checked)})
    if source is not None:
        collection.sources["f"] = source
    assert remarks(NOTEBOOK, collection, "f") == [f"code cells 2 and 6 all define `f`; {told}"]


def test_a_cell_can_be_told_by_what_it_defines():
    source = (
        "%matplotlib inline\n!pip list\nimport os, sys\nfrom math import pi\nSIZE = (2, -3)\n"
        "def f(comm):\n    return SIZE\nclass A: pass\nos._exit(1)\nx = f(1)\n"
        "for i in range(3): print(i)"
    )
    assert imports_and_definitions(source) == (
        "import os, sys\nfrom math import pi\nSIZE = (2, -3)\n"
        "def f(comm):\n    return SIZE\nclass A:\n    pass"
    )
    assert imports_and_definitions("%%writefile a.py\nx = 1") == "%%writefile a.py\nx = 1"
    assert imports_and_definitions("%%bash\nimport os") == ""
    assert imports_and_definitions("def f(:") == ""


def test_modules_beside_a_notebook_are_taken_as_far_as_that_is_sensible(tmp_path):
    (tmp_path / "a.py").write_text("A = 1")
    (tmp_path / "b.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "c.py").mkdir()
    (tmp_path / "d.txt").write_text("")
    assert read_modules(tmp_path) == ({"a.py": b"A = 1"}, "")
    (tmp_path / "big.py").write_bytes(b"#" * 1_000_000)
    for i in range(MOST_FILES):
        (tmp_path / f"m{i:02}.py").write_text("")
    found, told = read_modules(tmp_path)
    assert len(found) == MOST_FILES
    assert told.startswith("2 .py files beside the notebook were left out, first big.py:")


class ToyKernel:
    """Cells run here and now. DIE ends the "kernel"; LATE ends it so many cells later."""

    started = 0

    def __init__(self, *_: object) -> None:
        ToyKernel.started += 1
        self.peak = 0
        self.space: dict[str, Any] = {"LATE": self._late}
        self.cells_left: float = float("inf")

    def _late(self, cells: int) -> None:
        self.cells_left = cells

    def run(self, code: str, seconds: float) -> CellEnd:
        if self.cells_left < 0:
            return CellEnd("ended", is_lost=True, had_begun=False)
        if "DIE" in code or self.cells_left == 0:
            self.cells_left = -1
            return CellEnd("ended its process", is_lost=True, is_death=True)
        self.cells_left -= 1
        exec(code, self.space)
        return CellEnd()

    def wait(self, seconds: float) -> CellEnd:
        is_late = self.cells_left == 0
        return CellEnd("ended its process", is_late, had_begun=False) if is_late else CellEnd()

    def take(self, names: Sequence[str], seconds: float, *, only_new: bool) -> dict[str, Taken]:
        found = {name: self.space[name] for name in names if name in self.space}
        return {name: Taken(str(value()).encode()) for name, value in found.items()}

    def __enter__(self) -> ToyKernel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None: ...


def collect_with_toys(monkeypatch: pytest.MonkeyPatch, *cells: str) -> tuple[Notebook, Collection]:
    monkeypatch.setattr(collector, "KernelSession", ToyKernel)
    monkeypatch.setattr(ToyKernel, "started", 0)
    notebook = Notebook(cells, None)
    nowhere: Any = None
    return notebook, collect(nowhere, notebook, ["f", "g"], cell_timeout=9.0, memory=1)


def test_kernels_that_end_cost_no_function_of_a_later_cell(monkeypatch):
    deaths = [f"DIE = {i}" for i in range(MOST_KERNELS)]
    last = ("import math", "def g(): return math.floor(2.5)", "x = 1\ndef h(): pass")
    notebook, found = collect_with_toys(monkeypatch, "def f(): return 1", *deaths, *last)
    assert ToyKernel.started == MOST_KERNELS + 1
    assert {name: one.packed for name, one in found.functions.items()} == {"f": b"1", "g": b"2"}
    assert found.notes[0].startswith(f"The notebook ended its kernel {MOST_KERNELS} times; after")
    assert found.notes[-1] == (
        "code cell 6 (`import math`) did not run, because code cell 5 ended the kernel; nor did "
        "1 cell after it"
    )
    assert remarks(notebook, found, "g") == []


def test_what_was_not_run_says_so_even_when_the_last_kernel_ends(monkeypatch):
    cells = ["DIE"] * MOST_KERNELS + ["a = 1", "def f(): DIE", "b = 1", "def g(): return 1"]
    notebook, found = collect_with_toys(monkeypatch, *cells)
    assert found.functions == {}
    assert why_missing(notebook, found, "f").endswith("defines `f`, ended its process")
    assert why_missing(notebook, found, "g") == (
        "code cell 8 (`def g(): return 1`), which defines `g`, did not run, because code cell 6 "
        "ended the last kernel"
    )
    assert found.notes[-3:-1] == [
        "code cell 5 (`a = 1`) did not run, because code cell 4 ended the kernel; nor did 1 cell "
        "after it",
        "code cell 6 (`def f(): DIE`) ended its process",
    ]


@pytest.mark.parametrize("cells_later", [0, 1, 2])
def test_a_late_death_is_blamed_on_no_cell_that_only_ran_then(monkeypatch, cells_later):
    cells = (f"LATE({cells_later} + 1)", "def f(): return 1", "a = 1", "def g(): return 2", "b = 1")
    _, found = collect_with_toys(monkeypatch, *cells)
    assert {name: one.packed for name, one in found.functions.items()} == {"f": b"1", "g": b"2"}
    assert not any(trouble.startswith("ended") for trouble in found.troubles.values())
    assert "no one cell can be blamed" in found.notes[0]
    assert ToyKernel.started == 3


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    started = Workshop()
    yield started
    started.close()


CELLS = (
    "from course.grading import check\nimport sys",
    "%%writefile mymath.py\nFACTOR = 2\ndef double(x):\n    return FACTOR * x",
    "import mymath, statistics, beside\n"
    "def helper(x): return mymath.double(x) + beside.ONE\n"
    "def global_mean(comm, x): return helper(x)\n"
    "check('mean_of_uneven_parts', global_mean)",
    "def find_skipper(calls): import late; return late.LATE",
    "assert check('find_the_skipper', None).note == 'graded later'",
    "check('find_the_skipper', find_skipper)\nfind_skipper = find_skipper([])",
    "def helper(x): return None\ndef global_mean(comm, x): return -1",
    "check = None\n"
    "for name in list(sys.modules):\n    if name.startswith('course'): del sys.modules[name]",
    "def all_reduce_by_hand(comm, x): return helper_at_the_end",
    "check('all_reduce_by_hand', all_reduce_by_hand)",
    "helper_at_the_end = 5\nopen('late.py', 'w').write('LATE = 8')",
)


@pytest.mark.timeout(120)
def test_what_check_was_given_counts_and_own_modules_go_along(workshop, tmp_path, monkeypatch):
    (tmp_path / "beside.py").write_text("ONE = 1")
    (tmp_path / "late.py").write_text("LATE = 7")
    (tmp_path / "statistics.py").write_text("raise RuntimeError('hides a module of Python')")
    names = ["all_reduce_by_hand", "global_mean", "find_skipper"]
    notebook = Notebook(CELLS, None)
    found = collect(
        workshop, notebook, names, cell_timeout=30.0, memory=1_500_000_000, beside=tmp_path
    )
    assert list(found.troubles) == [9]
    assert "NoneType" in found.troubles[9]
    path = list(sys.path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        functions = {name: load_function(one.packed) for name, one in found.functions.items()}
        assert "mymath" not in sys.modules
        assert functions["global_mean"](None, 10) == 21
        assert functions["find_skipper"]([]) == 7
        assert functions["all_reduce_by_hand"](None, None) == 5
    finally:
        sys.path[:] = path
        sys.modules.pop("late", None)
    assert [found.functions[name].is_checked for name in names] == [False, True, True]
    assert found.sources == {"all_reduce_by_hand": 8, "global_mean": 2, "find_skipper": 5}
    assert remarks(notebook, found, "global_mean")[0].endswith(
        "the one that code cell 3 checks counts"
    )
    assert sorted(path.name for path in workshop.folder.iterdir()) == ["packages", "tiny"]


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_timer_that_ends_the_kernel_costs_no_function(workshop):
    cells = (
        "import os, threading, time\nthreading.Timer(1.0, os._exit, (3,)).start()",
        "def find_skipper(calls): return 1",
        "time.sleep(2)",
        "def global_mean(comm, x): return 2",
    )
    names = ["find_skipper", "global_mean"]
    found = collect(workshop, Notebook(cells, None), names, cell_timeout=20.0, memory=1_500_000_000)
    assert sorted(found.functions) == names
    assert "The kernel ended its process (exit code 3), and no one cell can be" in found.notes[0]
    assert not any(trouble.startswith("ended") for trouble in found.troubles.values())


def test_copies_of_the_packages_share_the_weights_and_hold_no_compiled_files(workshop):
    folder = workshop.new_folder()
    workshop.environment(folder)
    model = folder / "packages" / "labkit" / "models" / "tiny"
    assert (model / "model.safetensors").is_file()
    assert model.is_symlink()
    assert workshop.folder in model.resolve().parents, "not the installed ones"
    assert not list(folder.rglob("__pycache__"))
    workshop.remove_folder(folder)
    assert (workshop.folder / "tiny" / "model.safetensors").is_file()
