"""How fast the planner is beside aiconfigurator, and how far its predictions are from records.

    python benchmarks/planner.py            # a few minutes; writes results/planner.json
    python benchmarks/planner.py --quick    # under 50 seconds, no peer, writes nothing
    python benchmarks/planner.py --table    # print the stored result
    python benchmarks/planner.py --aiconfigurator ENVIRONMENT/bin/python

aiconfigurator needs packages that labkit does not: install it (`pip install aiconfigurator`) into
an environment of its own and give that one's Python. Searches run in fresh processes on one core;
their seconds are the processor's, so other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.peers.aiconfigurator_cli import PeerAnswer, ask_aiconfigurator, find_python
from benchmarks.planner_bars import held_bars, peer_bar, serving_bars, speed_bars
from benchmarks.planner_questions import BAR_GPUS, SIZES, dense_70b
from benchmarks.planner_times import ask
from labkit.experiments.provenance import Provenance

RESULT = Path(__file__).parent / "results" / "planner.json"
ROUNDS = 3


def measure_searches(*, quick: bool) -> list[dict[str, Any]]:
    """Each size in a process of its own, the one with a bar several times."""
    sizes = [BAR_GPUS] if quick else [*SIZES, *[BAR_GPUS] * (ROUNDS - 1)]
    return [ask("search", str(gpus)) for gpus in sizes]


def measure_peer(
    python: str | None, *, quick: bool
) -> tuple[list[dict[str, Any]], list[PeerAnswer]]:
    """Both on the same question, taking turns; the peer in full runs only."""
    ours, theirs = [], []
    for turn in range(1 if quick else ROUNDS):
        ours.append(ask("peer"))
        if quick:
            theirs.append(PeerAnswer(refusal="left out of quick runs"))
        elif turn == 0 or not theirs[-1].refusal:
            print(f"aiconfigurator, round {turn + 1} of {ROUNDS}", file=sys.stderr, flush=True)
            theirs.append(ask_aiconfigurator(python, dense_70b()))
    return ours, theirs


def search_lines(searches: Sequence[Mapping[str, Any]], estimates: Mapping[str, Any]) -> list[str]:
    """What each search took and found, and one estimate."""
    lines = [
        f"{each['gpus']:4} GPUs: {each['processor_seconds']:.2f} s of one core, "
        f"{each['ranked']} layouts ranked and {each['rejected']} rejected; best {each['best']}"
        for each in searches
    ]
    return [
        *lines,
        f"one estimate: {1e6 * estimates['median_seconds']:.0f} us in the middle of "
        f"{estimates['layouts']} layouts, {1e6 * estimates['slowest_seconds']:.0f} us for "
        f"{estimates['slowest']}",
    ]


def peer_lines(ours: Sequence[Mapping[str, Any]], theirs: Sequence[PeerAnswer]) -> list[str]:
    """Seconds of both, and the best layouts each names."""
    lines = [f"labkit: {1e3 * each['clock_seconds']:.0f} ms" for each in ours]
    for each in theirs:
        said = each.refusal or f"{each.seconds:.1f} s, version {each.version}"
        lines.append(f"aiconfigurator: {said}")
    lines += [
        f"  labkit, {each['mode']}: {each['layout']}, "
        f"{each['tokens_per_second_per_gpu']:.0f} tokens/s per GPU"
        for each in ours[0]["found"][:6]
    ]
    answered = next((each for each in theirs if each.found), PeerAnswer())
    lines += [
        f"  aiconfigurator, {each['mode']}: {each['replicas']} x "
        f"{' + '.join(each['layout'].values())}, "
        f"{each['tokens_per_second_per_gpu']:.0f} tokens/s per GPU"
        for each in answered.found
    ]
    return lines


def main() -> int:
    """Measure, print, and store a full result. Returns 0 even if bars are missed: they are told."""
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one search, no peer, not stored")
    parser.add_argument("--table", action="store_true", help="print the stored result and end")
    parser.add_argument("--output", type=Path, help="where to store the result instead")
    parser.add_argument("--aiconfigurator", metavar="PYTHON", help="the Python that has it")
    options = parser.parse_args()
    if options.table:
        if not RESULT.exists():
            parser.error("there is no stored result yet: run without --table first")
        print("\n".join(json.loads(RESULT.read_text())["summary"]))
        return 0
    provenance = Provenance.here(packages=())
    searches, estimates = measure_searches(quick=options.quick), ask("estimates")
    ours, theirs = measure_peer(find_python(options.aiconfigurator), quick=options.quick)
    peer_seconds = [each.seconds for each in theirs if each.seconds is not None]
    found = [
        *held_bars(run=not options.quick),
        *serving_bars(),
        *speed_bars(searches, estimates),
        peer_bar([each["clock_seconds"] for each in ours], peer_seconds),
    ]
    lines = [
        *search_lines(searches, estimates),
        "",
        *peer_lines(ours, theirs),
        "",
        *map(str, found),
    ]
    print(
        f"{provenance}".rstrip(", ") + "\n",
        *lines,
        f"\ntook {time.monotonic() - start:.0f} s",
        sep="\n",
    )
    output = options.output or (None if options.quick else RESULT)
    if output is not None:
        result = {
            "provenance": provenance.as_dict(),
            "searches": searches,
            "estimates": estimates,
            "labkit": ours,
            "aiconfigurator": [vars(each) for each in theirs],
            "bars": [bar.as_dict() for bar in found],
            "summary": lines,
        }
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
