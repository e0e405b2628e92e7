"""How long the planner takes, measured in a process of its own on one core.

python -m benchmarks.planner_times search 256    # one search, nothing computed before; JSON
python -m benchmarks.planner_times estimates     # one decode step of each layout that fits
python -m benchmarks.planner_times peer          # the question that aiconfigurator is asked too
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.planner_questions import dense_70b, large_moe
from labkit.plan.search import search
from labkit.plan.steptime import decode_step

REPOSITORY = Path(__file__).resolve().parents[1]
REPEATS = 20
_Found = TypeVar("_Found")


def ask(*arguments: str, deadline: float = 120.0) -> dict[str, Any]:
    """What a fresh process says. Raises CalledProcessError or TimeoutExpired if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.planner_times", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=deadline,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _timed(work: Callable[[], _Found]) -> tuple[_Found, float, float]:
    """What it returns, with seconds of the processor and of the clock."""
    clock, processor = time.perf_counter(), time.process_time()
    found = work()
    return found, time.process_time() - processor, time.perf_counter() - clock


def time_search(gpus: int) -> dict[str, Any]:
    """The first search of a process: nothing about the model's layouts is kept yet."""
    question = large_moe(gpus)
    answer, processor, clock = _timed(lambda: search(question))
    best = answer.best
    return {
        "gpus": gpus,
        "processor_seconds": processor,
        "clock_seconds": clock,
        "ranked": len(answer.ranked),
        "rejected": len(answer.rejected),
        "best": best.title if best else "",
    }


def time_estimates() -> dict[str, Any]:
    """The processor time of one decode step, for each layout that fits."""
    question = large_moe()
    found = {}
    for each in search(question).ranked:
        layout, batch = each.layout, each.batch

        def estimates(layout=layout, batch=batch) -> None:  # type: ignore[no-untyped-def]
            for step in range(REPEATS):
                decode_step(question.model, question.system, layout, batch + step, question.context)

        found[each.title] = min(_timed(estimates)[1] for _ in range(3)) / REPEATS
    slowest = max(found, key=found.__getitem__)
    return {
        "layouts": len(found),
        "median_seconds": statistics.median(found.values()),
        "slowest_seconds": found[slowest],
        "slowest": slowest,
    }


def time_peer_question() -> dict[str, Any]:
    """Our answer to the question that the peer is asked; the calibration is made before."""
    question = dense_70b()
    answer, processor, clock = _timed(lambda: search(question))
    shown = [
        {
            "layout": each.title,
            "mode": "one pool" if each.pools is None else "two pools",
            "tokens_per_second_per_gpu": each.tokens_per_second_per_gpu,
            "tpot_ms": 1e3 * each.tpot,
        }
        for each in answer.ranked
    ]
    return {"processor_seconds": processor, "clock_seconds": clock, "found": shown}


def main(arguments: list[str]) -> int:
    """Print one measurement as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    what, *rest = arguments
    if what == "search":
        found = time_search(int(rest[0]))
    elif what == "estimates":
        found = time_estimates()
    else:
        found = time_peer_question()
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
