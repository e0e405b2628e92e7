"""A notebook's cells run, one by one, to collect the functions that its exercises ask for.

Nothing is judged here. A cell that fails costs what it defines. A cell that ends its kernel, or has
to be ended, is left out, and the others run again in a new kernel. Where too many do so, or where
no cell can be named that did, a last kernel runs only imports and the cells that define a function.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from course.grading.cell_definitions import imports_and_definitions
from course.grading.cell_remarks import notes_told
from course.grading.collection import NOT_RUN, Collection
from course.grading.handover import Taken
from course.grading.kernel_session import CellEnd, KernelSession, KernelStartError
from course.grading.own_modules import read_modules
from course.grading.submission import Notebook
from course.grading.workshop import Workshop

MOST_KERNELS = 4
"""Kernels that run the notebook as it is; there may be one more, for what it defines."""
MOST_CELL_TIMEOUTS = 8
"""The cells of a notebook may take so many times the limit of one, together."""
_LAST_CELL_TIMEOUTS = 2  # what the last kernel may take besides
_SECONDS_THE_SECOND_TIME = 5.0
_TAKE_SECONDS = 20.0
_WAIT_SECONDS = 1.0


def collect(
    workshop: Workshop,
    notebook: Notebook,
    names: Sequence[str],
    *,
    cell_timeout: float,
    memory: int,
    beside: Path | None = None,
) -> Collection:
    """Run the cells of `notebook` in order and take the functions called `names`.

    What `check` was given counts, as it was at the last check; a function that was never checked
    counts as it is in the end. cell_timeout: seconds that one cell may take. memory: bytes that the
    kernel and all it starts may have resident. beside: the folder whose .py files the notebook may
    import. Raises KernelStartError when no kernel starts, whatever the notebook says.
    """
    modules, left_out = read_modules(beside) if beside else ({}, "")
    collector = _Collector(notebook, names, cell_timeout)
    collection = collector.collection
    if left_out:
        collection.notes.append(left_out)
    for number in range(MOST_KERNELS + 1):
        with _kernel(workshop, memory, modules) as kernel:
            if number == MOST_KERNELS or collector.gives_up:
                collector.run_definitions(kernel)
                is_done = True
            else:
                is_done = collector.run_all(kernel)
        collection.peak = max(collection.peak, kernel.peak)
        if is_done:
            break
        if number == MOST_KERNELS - 1:
            collector.give_up_after(MOST_KERNELS)
    collection.notes += notes_told(notebook, collection)
    return collection


def _kernel(workshop: Workshop, memory: int, modules: Mapping[str, bytes]) -> KernelSession:
    try:
        return KernelSession(workshop, memory, modules)
    except KernelStartError:
        return KernelSession(workshop, memory, modules)


class _Collector:
    """Kernel after kernel of one notebook, and what each taught about its cells."""

    def __init__(self, notebook: Notebook, names: Sequence[str], cell_timeout: float) -> None:
        self.collection = Collection()
        self.gives_up = False
        self._cells = {cell: code for cell, code in enumerate(notebook.cells) if code.strip()}
        self._names = names
        self._cell_timeout = cell_timeout
        self._budget = MOST_CELL_TIMEOUTS * cell_timeout
        self._defining = {cell for name in names for cell in notebook.cells_defining(name)}
        self._has_run: set[int] = set()
        self._fatal: list[int] = []
        self._suspect: tuple[int, float] | None = None  # the newest, and how long it ran

    def run_all(self, kernel: KernelSession) -> bool:
        """Run every cell that has not ended a kernel. False: another kernel has to."""
        for cell, source in self._cells.items():
            if self._suspect and self._suspect[0] == cell:
                end = kernel.wait(min(2 * self._suspect[1] + _WAIT_SECONDS, self._cell_timeout))
                if end.is_lost:
                    return self._give_up_for(end)
                self._suspect = None
            if cell in self._fatal:
                continue
            before = self.collection.spent
            end = self._run(kernel, cell, source)
            if end.is_lost and (not end.had_begun or (end.is_death and cell in self._has_run)):
                return self._give_up_for(end)
            self._note(cell, end)
            if end.is_lost:
                self._fatal.append(cell)
                self._suspect = (cell, self.collection.spent - before) if end.is_death else None
                return False
            if cell in self._defining or "check" in source:
                self._keep(kernel.take(self._names, _TAKE_SECONDS, only_new=True), cell)
        self._keep(kernel.take(self._names, _TAKE_SECONDS, only_new=False))
        return True

    def run_definitions(self, kernel: KernelSession) -> None:
        """Run imports and the cells that define a function, for functions not there yet."""
        wanted = [name for name in self._names if name not in self.collection.functions]
        self._budget = self.collection.spent + _LAST_CELL_TIMEOUTS * self._cell_timeout
        for cell, source in self._cells.items():
            if cell in self._fatal:
                continue
            is_whole = cell in self._defining
            code = source if is_whole else imports_and_definitions(source)
            if not code:
                continue
            end = self._run(kernel, cell, code)
            if is_whole and end.had_begun:
                self._note(cell, end)
            if end.is_lost:
                self._fatal.append(cell)
                self._skip(f"code cell {cell + 1} ended the last kernel", self._defining)
                break
            if is_whole:
                self._keep(kernel.take(wanted, _TAKE_SECONDS, only_new=True), cell)
        self._keep(kernel.take(wanted, _TAKE_SECONDS, only_new=False))

    def give_up_after(self, kernels: int) -> None:
        """So many kernels were ended by cells that are known."""
        self.collection.notes.append(
            f"The notebook ended its kernel {kernels} times; after that, only imports and the "
            f"cells that define an exercise's function were run"
        )
        self._give_up(f"code cell {self._fatal[-1] + 1} ended the kernel")

    def _give_up_for(self, end: CellEnd) -> bool:
        """The kernel ended, and the cell that ran then, if one did, may not be to blame."""
        if self._suspect:
            self._fatal.remove(self._suspect[0])
            self.collection.troubles.pop(self._suspect[0], None)
        self.collection.notes.append(
            f"The kernel {end.trouble}, and no one cell can be blamed: something that ran before "
            f"may have gone on in the background; after that, only imports and the cells that "
            f"define an exercise's function were run"
        )
        self._give_up(f"the kernel {end.trouble} at a moment that points to no one cell")
        return False

    def _give_up(self, reason: str) -> None:
        self.gives_up = True
        self._skip(reason, set(self._cells) - self.collection.troubles.keys())

    def _skip(self, reason: str, cells: set[int]) -> None:
        """Say why these cells did not run, as far as they did not."""
        for cell in cells - self._has_run - set(self._fatal):
            self.collection.troubles[cell] = f"{NOT_RUN}, because {reason}"

    def _run(self, kernel: KernelSession, cell: int, code: str) -> CellEnd:
        """Run a cell's code, as far as the notebook has time left."""
        seconds = min(self._cell_timeout, self._budget - self.collection.spent)
        if "ran longer" in self.collection.troubles.get(cell, ""):
            seconds = min(seconds, _SECONDS_THE_SECOND_TIME)
        if seconds <= 0:
            return CellEnd(f"{NOT_RUN}, because the cells before it took {self._budget:.0f} s")
        started = time.monotonic()
        end = kernel.run(code, seconds)
        self.collection.spent += time.monotonic() - started
        return end

    def _note(self, cell: int, end: CellEnd) -> None:
        self.collection.troubles.pop(cell, None)
        if end.trouble:
            self.collection.troubles[cell] = end.trouble
        if not end.is_lost and not end.trouble.startswith(NOT_RUN):
            self._has_run.add(cell)

    def _keep(self, taken: Mapping[str, Taken], cell: int | None = None) -> None:
        """Keep functions taken after `cell`, or in the end. One that was checked stays."""
        for name, one in taken.items():
            before = self.collection.functions.get(name)
            if before is not None and before.is_checked and not one.is_checked:
                continue
            self.collection.functions[name] = one
            if cell is not None:
                self.collection.sources[name] = cell
