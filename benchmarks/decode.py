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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bars import bars
from benchmarks.plan import COMMAND_START, FULL, QUICK
from benchmarks.report import full_report, rank_sentences, summary, table
from benchmarks.rounds import measure
from benchmarks.rows import Row, row_from_dict
from benchmarks.sides import PACKAGES
from labkit.experiments.provenance import Provenance
from labkit.models.library import resolve

RESULT = Path(__file__).parent / "results" / "decode.json"
MODEL = "smollm2-135m"


def _show(block: list[Row]) -> None:
    """Blocks as they come, so that a long run can be followed and an ended one is not lost."""
    print(table(block), flush=True)


def main() -> int:
    """Measure, print, and store a full result. Returns 0 even if bars are missed: they are told."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few tokens, few peers, not stored")
    parser.add_argument("--table", action="store_true", help="print the stored result and end")
    parser.add_argument("--output", type=Path, help="where to store the result instead")
    options = parser.parse_args()
    if options.table and not RESULT.exists():
        parser.error("there is no stored result yet: run without --table first")
    if options.table:
        stored = json.loads(RESULT.read_text())
        rows = [row_from_dict(fields) for fields in stored["rows"]]
        print(full_report(rows, bars(rows)))
        return 0
    plan = QUICK if options.quick else FULL
    provenance = Provenance.here(threads="as in each row", packages=PACKAGES)
    rows = measure(plan, resolve(MODEL), COMMAND_START, _show)
    print(f"\n{provenance}\ntook {time.monotonic() - COMMAND_START:.0f} s\n")
    found = [bar for bar in bars(rows) if not options.quick or bar.value is not None]
    print("\n".join(summary(rows, found)))
    output = options.output or (None if options.quick else RESULT)
    if output is not None:
        result = {
            "provenance": provenance.as_dict(),
            "model": MODEL,
            "prompt_tokens": plan.prompt_tokens,
            "new_tokens": {str(batch): count for batch, count in plan.new_tokens.items()},
            "rows": [row.as_dict() for row in rows],
            "bars": [bar.as_dict() for bar in found],
            "ranks": rank_sentences(rows),
        }
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
