"""Decode speed of SmolLM2-135M: labkit, its peers, and the memory bound, in interleaved rounds.

    python benchmarks/decode.py            # all of it, about 12 minutes; writes results/decode.json
    python benchmarks/decode.py --quick    # under a minute, writes nothing
    python benchmarks/decode.py --table    # print the stored result

Every side runs in a process of its own with pinned threads, gets the same prompts and weights, and
generates the same number of tokens greedily. Only steps after the first new token count, so the
prefill is left out. Sides take turns (A B C, B C A, ...): what disturbs the machine disturbs all.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

START = time.monotonic()
"""Before the slow imports, so that limits hold for the whole command."""

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bars import DTYPES, bars
from benchmarks.peers.bandwidth import READ_BYTES
from benchmarks.process import SideFailed, SideProcess
from benchmarks.protocol import Answer, Request
from benchmarks.report import full_report
from benchmarks.rows import Agreement, Row, row_from_dict
from benchmarks.sides import (
    ALL_SIDES,
    BANDWIDTH,
    BOUND,
    PACKAGES,
    QUICK_SIDES,
    TRANSFORMERS,
    Side,
)
from labkit.experiments.provenance import Provenance
from labkit.models.checkpoint import open_checkpoint
from labkit.models.library import resolve

RESULT = Path(__file__).parent / "results" / "decode.json"
MODEL = "smollm2-135m"
BYTES_PER_ELEMENT = {"float32": 4, "bfloat16": 2}
TEXT = """\
The harbour was quiet when the first boat came in. Two women carried the nets up the steps and
laid them out to dry, and a boy counted the fish into wooden boxes. Nobody spoke much before the
sun was over the hill. Then the baker opened her door, the smell of bread filled the street, and
the whole village seemed to wake at once. Children ran down to the water to see what the night had
brought. An old man on the wall told anyone who would listen that the weather was about to change,
as he had told them every morning for twenty years, and now and then, of course, he was right.
By noon the boxes were gone, the boats were clean, and the harbour was quiet again."""


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    sides: tuple[Side, ...]
    dtypes: tuple[str, ...]
    new_tokens: dict[int, int]
    """Tokens per prompt, by batch size: fewer where a step takes longer."""
    rounds: int
    slow_rounds: int
    tries_variants: bool
    deadline: float
    """Seconds that one answer may take."""
    budget: float
    """Seconds after which no further round starts."""
    limit: float
    """Seconds after which nothing is waited for any more."""
    prompt_tokens: int = 16


FULL = Plan(
    sides=ALL_SIDES,
    dtypes=DTYPES,
    new_tokens={1: 33, 8: 17, 32: 9},
    rounds=4,
    slow_rounds=3,
    tries_variants=True,
    deadline=180.0,
    budget=1500.0,
    limit=1800.0,
)
QUICK = Plan(
    sides=QUICK_SIDES,
    dtypes=("float32",),
    new_tokens={1: 6},
    rounds=3,
    slow_rounds=1,
    tries_variants=False,
    deadline=35.0,
    budget=26.0,
    limit=41.0,
)


class Clock:
    """How much of a plan's time is left."""

    def __init__(self, plan: Plan, start: float) -> None:
        self._plan = plan
        self._start = start

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def is_over_budget(self) -> bool:
        """No further round starts."""
        return self.elapsed > self._plan.budget

    @property
    def deadline(self) -> float:
        """Seconds the next answer may take."""
        return max(min(self._plan.deadline, self._plan.limit - self.elapsed), 0.0)


@dataclass
class Contestant:
    """One side at one thread count, while one dtype and batch size are measured."""

    side: Side
    threads: int
    process: SideProcess
    variant: str = ""
    answers: list[Answer] = field(default_factory=list)
    error: str = ""


def prompts(model: Path, length: int, count: int) -> list[list[int]]:
    """`count` windows of TEXT, each `length` tokens long and starting 3 tokens after the last."""
    ids = open_checkpoint(model).load_tokenizer().encode(TEXT)
    if len(ids) < length + 3 * (count - 1):
        raise ValueError(f"the text has {len(ids)} tokens, too few for {count} prompts")
    return [list(ids[3 * i : 3 * i + length]) for i in range(count)]


def measure(plan: Plan, model: Path, start: float | None = None) -> list[Row]:
    """All rows of a plan. A side that fails leaves rows that say why.

    The plan's limits count from `start`, a `time.monotonic()`, or from now.
    """
    windows = prompts(model, plan.prompt_tokens, max(plan.new_tokens))
    weights = open_checkpoint(model).spec.num_parameters
    processes = {side: side.start(model) for side in plan.sides}
    rows: list[Row] = []
    clock = Clock(plan, time.monotonic() if start is None else start)
    try:
        for dtype in plan.dtypes:
            for batch, new_tokens in plan.new_tokens.items():
                contestants = [
                    Contestant(side, threads, processes[side])
                    for side in plan.sides
                    for threads in side.threads
                ]
                print(
                    f"{clock.elapsed:4.0f} s: {dtype}, batch {batch}", file=sys.stderr, flush=True
                )
                requests = _Requests(plan, dtype, windows[:batch], new_tokens)
                _measure_batch(plan, contestants, requests, clock)
                rows += _rows(contestants, requests, weights * BYTES_PER_ELEMENT[dtype])
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
        common = {
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


def main() -> int:
    """Measure, print, and store a full result. Returns 0 even if bars are missed: they are told."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few tokens, few peers, not stored")
    parser.add_argument("--table", action="store_true", help="print the stored result and end")
    parser.add_argument("--output", type=Path, help="where to store the result instead")
    options = parser.parse_args()
    if options.table:
        stored = json.loads(RESULT.read_text())
        rows = [row_from_dict(fields) for fields in stored["rows"]]
        print(full_report(rows, bars(rows)))
        return 0
    plan = QUICK if options.quick else FULL
    provenance = Provenance.here(threads="as in each row", packages=PACKAGES)
    rows = measure(plan, resolve(MODEL), START)
    print(f"{provenance}\ntook {time.monotonic() - START:.0f} s\n")
    found = [bar for bar in bars(rows) if not options.quick or bar.value is not None]
    print(full_report(rows, found))
    output = options.output or (None if options.quick else RESULT)
    if output is not None:
        result = {
            "provenance": provenance.as_dict(),
            "model": MODEL,
            "prompt_tokens": plan.prompt_tokens,
            "new_tokens": {str(batch): count for batch, count in plan.new_tokens.items()},
            "rows": [row.as_dict() for row in rows],
            "bars": [bar.as_dict() for bar in found],
        }
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
