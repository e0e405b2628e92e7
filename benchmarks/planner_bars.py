"""The bars of `benchmarks/planner.py`: how fast the planner is, and how far its predictions are."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bar import Bar, ErrorBar
from benchmarks.planner_questions import BAR_GPUS
from labkit.plan.recorded_serving import ROWS
from labkit.plan.serving_errors import error_cells, mean_abs_error
from labkit.plan.serving_presets import FITTED_DEGREES, FITTED_PROMPT, vllm_h100

SEARCH_SECONDS = 2.0
ESTIMATE_SECONDS = 200e-6
MEAN_ERROR, CELL_ERROR = 0.10, 0.20
REPOSITORY = Path(__file__).resolve().parents[1]
_CASES = ("a10", "a11", "c3", "c5", "c6", "c8", "d2", "d5", "d8", "d10", "d11", "g1")
HELD_BY_TESTS: Mapping[str, tuple[str, ...]] = {
    "facts T, P1, D4, Q1, V1 to the digits given": (
        "plan/test_tp_steps.py",
        "plan/test_layout_search.py",
        "plan/test_tradeoff.py",
        "plan/test_pipeline_time.py",
        "plan/test_split_pools.py",
        "plan/test_legality.py",
        "plan/test_memory.py",
        "cases/test_a10_*.py",
    ),
    "cases A10, A11, C3, C5, C6, C8, D2, D5, D8, D10, D11, G1": tuple(
        f"cases/test_{case}_*.py" for case in _CASES
    ),
    "properties: capacity, sums, relabelling, no layout legal and too large": (
        "plan/test_memory.py",
        "plan/test_step_time.py",
        "plan/test_topology.py",
        "plan/test_layout_search.py",
    ),
}
"""Bars that are tests and no timings, with their files: a full run runs them and counts."""


@dataclass(frozen=True)
class TimeBar:
    """Seconds, where at most `bar` was asked for; None: it was not measured."""

    name: str
    value: float | None
    bar: float

    @property
    def ok(self) -> bool:
        """Kept. What was not measured was not kept."""
        return self.value is not None and self.value <= self.bar

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"ok": self.ok}

    def __str__(self) -> str:
        value = "not measured" if self.value is None else _seconds(self.value)
        verdict = "ok" if self.ok else "MISSED"
        return f"{verdict:7} {self.name}: {value} (bar at most {_seconds(self.bar)})"


@dataclass(frozen=True)
class HeldBar:
    """Tests that hold a bar; all must pass. None: they were not run."""

    name: str
    passed: int | None
    failed: int | None

    @property
    def ok(self) -> bool:
        """Some ran and none failed."""
        return bool(self.passed) and self.failed == 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"ok": self.ok}

    def __str__(self) -> str:
        if self.passed is None:
            return f"{'not run':7} {self.name}"
        verdict = "ok" if self.ok else "MISSED"
        return f"{verdict:7} {self.name}: {self.passed} tests passed, {self.failed} failed"


def speed_bars(
    searches: Sequence[Mapping[str, Any]], estimates: Mapping[str, Any] | None
) -> list[TimeBar]:
    """Of the search over `BAR_GPUS` GPUs, the median of its processes; of the slowest estimate."""
    seconds = [each["processor_seconds"] for each in searches if each["gpus"] == BAR_GPUS]
    return [
        TimeBar(
            f"every layout of a 671B MoE on {BAR_GPUS} GPUs ranked, one core",
            median(seconds) if seconds else None,
            SEARCH_SECONDS,
        ),
        TimeBar(
            "the slowest single estimate of these",
            estimates["slowest_seconds"] if estimates else None,
            ESTIMATE_SECONDS,
        ),
    ]


def peer_bar(ours: Sequence[float], theirs: Sequence[float]) -> Bar:
    """How many times as fast as aiconfigurator on the same question, by the clock; each round's
    ratio, its process start included on its side."""
    ratios = [peer / own for own, peer in zip(ours, theirs, strict=False)]
    name = "labkit against aiconfigurator, 70B on 8 GPUs, one question"
    return Bar(name, median(ratios) if ratios else None, 1.0)


def serving_bars() -> list[ErrorBar]:
    """TPOT of recorded rows that were not fitted: the mean over all, and the worst cell."""
    fit = vllm_h100()
    held_out = [
        row for row in ROWS if row.tp not in FITTED_DEGREES or row.prompt_tokens != FITTED_PROMPT
    ]
    errors = fit.compare(held_out)
    fitted = f"fitted to TP {FITTED_DEGREES[0]} and {FITTED_DEGREES[1]} at {FITTED_PROMPT} tokens"
    return [
        ErrorBar(f"TPOT of {len(errors)} other rows, {fitted}", mean_abs_error(errors), MEAN_ERROR),
        ErrorBar(
            f"the same, worst cell of TP and prompt, {fitted}",
            max(error_cells(errors).values()),
            CELL_ERROR,
        ),
    ]


def held_bars(*, run: bool) -> list[HeldBar]:
    """The bars that tests hold; `run` runs them now."""
    return [
        HeldBar(name, *_run(paths)) if run else HeldBar(name, None, None)
        for name, paths in HELD_BY_TESTS.items()
    ]


def _run(paths: Sequence[str]) -> tuple[int, int]:
    """How many tests of some files pass, and how many do not."""
    tests = REPOSITORY / "tests"
    files = [str(file) for path in paths for file in sorted(tests.glob(path))]
    command = [sys.executable, "-m", "pytest", "-rN", "--no-header", *files]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600)
    return counts(done.stdout)


def counts(output: str) -> tuple[int, int]:
    """Tests that passed and that did not, from the last line of pytest."""
    last = output.strip().splitlines()[-1] if output.strip() else ""
    found = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|error)", last)}
    return found.get("passed", 0), found.get("failed", 0) + found.get("error", 0)


def _seconds(value: float) -> str:
    return f"{1e6 * value:.0f} us" if value < 1e-3 else f"{value:.3g} s"
