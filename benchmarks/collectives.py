"""Collectives on this machine, by who runs them, and how well the cost models describe them.

    python benchmarks/collectives.py            # all; writes results/collectives.json
    python benchmarks/collectives.py --quick    # under a minute, writes nothing
    python benchmarks/collectives.py --table    # print the stored result

Every implementation, collective and size takes its turns in an order shuffled anew for each turn,
on ranks of one pool; speed-ups are medians of the ratio within a turn. The presets are held against
points recorded elsewhere, which come with labkit.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bar import Bar, ErrorBar
from benchmarks.collective_bars import speed_bars
from benchmarks.collective_fits import LocalFit, local_fits
from benchmarks.collective_plan import FULL, QUICK, Plan
from benchmarks.preset_errors import PresetError, preset_bars, preset_errors
from labkit.experiments.collective_report import print_times, seconds_text
from labkit.experiments.collective_rows import CollectiveTimes, together
from labkit.experiments.collective_time import time_collectives
from labkit.experiments.overlap import OverlapTime, time_overlap
from labkit.experiments.size_list import size_text
from labkit.ranks.pool import RankPool

RESULT = Path(__file__).parent / "results" / "collectives.json"


def measure(plan: Plan) -> tuple[CollectiveTimes, list[OverlapTime]]:
    """Every part of the plan, then the overlap over each transport of 2 ranks."""
    parts = []
    for part in plan.parts:
        print(f"{part.ranks} ranks: {', '.join(part.ops)}", file=sys.stderr, flush=True)
        with RankPool(part.ranks, timeout=plan.deadline) as pool:
            parts.append(pool.run(time_collectives, part.sizes, ops=part.ops, turns=part.turns)[0])
    overlaps = []
    for transport in ("gloo", None):
        with RankPool(2, timeout=plan.deadline, collectives=transport) as pool:
            overlaps.append(pool.run(time_overlap, turns=plan.overlap_turns)[0])
    return together(parts), overlaps


def main() -> int:
    """Measure, print, and store a full result. Returns 0 even if bars are missed: they are told."""
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few sizes and turns, not stored")
    parser.add_argument("--table", action="store_true", help="print the stored result and end")
    parser.add_argument("--output", type=Path, help="where to store the result instead")
    options = parser.parse_args()
    if options.table:
        if not RESULT.exists():
            parser.error("there is no stored result yet: run without --table first")
        stored = json.loads(RESULT.read_text())
        print_times(CollectiveTimes.from_dict(stored))
        print("\n".join(stored["summary"]))
        return 0
    plan = QUICK if options.quick else FULL
    times, overlaps = measure(plan)
    found: list[Bar | ErrorBar] = [*speed_bars(times), *preset_bars(plan.spoil_every)]
    fits, errors = list(local_fits(times)), preset_errors()
    lines = summary(fits, overlaps, errors, found)
    print_times(times)
    print("\n".join(lines))
    print(f"\ntook {time.monotonic() - start:.0f} s")
    output = options.output or (None if options.quick else RESULT)
    if output is not None:
        result: dict[str, Any] = {
            **times.as_dict(),
            "fits": [fit.as_dict() for fit in fits],
            "overlap": [_overlap_fields(overlap) for overlap in overlaps],
            "presets": [error.as_dict() for error in errors],
            "bars": [bar.as_dict() for bar in found],
            "summary": lines,
        }
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def summary(
    fits: Sequence[LocalFit],
    overlaps: Sequence[OverlapTime],
    errors: Sequence[PresetError],
    found: Sequence[Bar | ErrorBar],
) -> list[str]:
    """Fits, overlap, the presets' errors and the bars, line by line."""
    return [
        "",
        *map(str, fits),
        "",
        *map(_overlap_text, overlaps),
        "",
        *map(str, errors),
        "",
        *map(str, found),
    ]


def _overlap_text(overlap: OverlapTime) -> str:
    return (
        f"overlap, {overlap.ranks} ranks, {overlap.transport}, {size_text(overlap.payload_bytes)} "
        f"beside {overlap.products} products: one after the other "
        f"{seconds_text(overlap.one_after_other_seconds)}, side by side "
        f"{seconds_text(overlap.side_by_side_seconds)}, hidden {overlap.hidden_share:.0%} of what "
        "could be"
    )


def _overlap_fields(overlap: OverlapTime) -> dict[str, Any]:
    return asdict(overlap) | {
        "hidden_share": overlap.hidden_share,
        "provenance": overlap.provenance.as_dict(),
    }


if __name__ == "__main__":
    sys.exit(main())
