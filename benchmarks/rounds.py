"""Interleaved rounds: every side takes its turn, at each dtype and batch size of a plan."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.plan import Clock, Plan
from benchmarks.process import SideFailed, SideProcess
from benchmarks.prompts import prompts
from benchmarks.protocol import Answer, Request
from benchmarks.rows import Agreement, Row
from benchmarks.sides import BANDWIDTH, BOUND, READ_BYTES, TRANSFORMERS, Side
from labkit.models.checkpoint import open_checkpoint

BYTES_PER_ELEMENT = {"float32": 4, "bfloat16": 2}


@dataclass
class Contestant:
    """One side at one thread count, while one dtype and batch size are measured."""

    side: Side
    threads: int
    process: SideProcess
    variant: str = ""
    answers: list[Answer] = field(default_factory=list)
    error: str = ""


def measure(
    plan: Plan,
    model: Path,
    start: float | None = None,
    show: Callable[[list[Row]], None] | None = None,
) -> list[Row]:
    """All rows of a plan. A side that fails leaves rows that say why.

    The plan's limits count from `start`, a `time.monotonic()`, or from now. `show` gets the rows
    of each dtype and batch size as soon as they are measured.
    """
    windows = prompts(model, plan.prompt_tokens, max(plan.new_tokens))
    weights = open_checkpoint(model).spec.num_parameters
    processes = {side: side.start(model) for side in plan.sides}
    rows: list[Row] = []
    clock = Clock(plan, time.monotonic() if start is None else start)
    failures: dict[Side, str] = {}
    try:
        for side, process in processes.items():
            try:
                process.wait_until_ready(clock.deadline)
            except SideFailed as failure:
                failures[side] = str(failure)
        for dtype in plan.dtypes:
            for batch, new_tokens in plan.new_tokens.items():
                contestants = [
                    Contestant(side, threads, processes[side], error=failures.get(side, ""))
                    for side in plan.sides
                    for threads in side.threads
                ]
                print(
                    f"{clock.elapsed:4.0f} s: {dtype}, batch {batch}", file=sys.stderr, flush=True
                )
                requests = _Requests(plan, dtype, windows[:batch], new_tokens)
                _measure_batch(plan, contestants, requests, clock)
                block = list(_rows(contestants, requests, weights * BYTES_PER_ELEMENT[dtype]))
                rows += block
                if show is not None:
                    show(block)
    finally:
        for process in processes.values():
            process.dismiss()
        for process in processes.values():
            process.close(patience=1.0)
    return rows


@dataclass(frozen=True)
class _Requests:
    plan: Plan
    dtype: str
    prompts: list[list[int]]
    new_tokens: int

    def to(self, contestant: Contestant, *, variant: str, new_tokens: int) -> Request:
        return Request(self.dtype, contestant.threads, self.prompts, new_tokens, variant)


def _measure_batch(
    plan: Plan, contestants: list[Contestant], requests: _Requests, clock: Clock
) -> None:
    """Take turns; the first turn begins with a warm-up. Answers and errors stay in contestants."""
    for number in range(plan.rounds):
        if number > 0 and clock.is_over_budget:
            return
        first = number % len(contestants)
        for contestant in contestants[first:] + contestants[:first]:
            is_over = contestant.side.is_slow and number >= plan.slow_rounds
            if contestant.error or is_over:
                continue
            with _failures_noted(contestant):
                if number == 0:
                    _choose_variant(plan, contestant, requests, clock)
                request = requests.to(
                    contestant, variant=contestant.variant, new_tokens=requests.new_tokens
                )
                contestant.answers.append(contestant.process.ask(request, clock.deadline))


def _choose_variant(plan: Plan, contestant: Contestant, requests: _Requests, clock: Clock) -> None:
    """A short run of each variant, which also warms the side up; the fastest stays."""
    variants = contestant.side.variants if plan.tries_variants else contestant.side.variants[:1]
    seconds: dict[str, float] = {}
    for variant in variants:
        few = requests.to(contestant, variant=variant, new_tokens=4)
        seconds[variant] = contestant.process.ask(few, clock.deadline).seconds
    contestant.variant = min(variants, key=lambda variant: seconds[variant])


@contextmanager
def _failures_noted(contestant: Contestant) -> Iterator[None]:
    """A side's failure is written down instead of ending the benchmark."""
    try:
        yield
    except SideFailed as failure:
        contestant.error = str(failure)
        print(f"  {failure}", file=sys.stderr, flush=True)


def _rows(contestants: list[Contestant], requests: _Requests, weight_bytes: int) -> Iterator[Row]:
    reference = next(
        (c.answers[0].tokens for c in contestants if c.side.name == TRANSFORMERS and c.answers),
        None,
    )
    for contestant in contestants:
        side, answers = contestant.side, contestant.answers
        common: dict[str, Any] = {
            "ranks": side.ranks,
            "threads": contestant.threads,
            "dtype": requests.dtype,
            "batch": len(requests.prompts),
            "settings": answers[-1].settings if answers else "",
            "error": contestant.error,
        }
        if side.name == BANDWIDTH:
            steps = [weight_bytes * answer.seconds / READ_BYTES for answer in answers]
            yield Row(side=BOUND, seconds_per_step=tuple(steps), **common)
            continue
        steps = [answer.seconds / (requests.new_tokens - 1) for answer in answers]
        agreement = None
        if reference is not None and answers:
            agreement = Agreement.of(answers[0].tokens, reference)
        yield Row(side=side.name, seconds_per_step=tuple(steps), agreement=agreement, **common)
