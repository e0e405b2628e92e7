"""aiconfigurator's answer to a question, by its command line, from an environment of its own."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.planner_questions import PEER_MODEL, PEER_SYSTEM
from labkit.plan.question import Question

DEADLINE = 300.0
_RANKED = re.compile(r"^(agg|disagg) Top Configurations")
_HEADINGS = {
    "tokens/s/gpu": "tokens_per_second_per_gpu",
    "tokens/s/user": "tokens_per_second_per_user",
}


@dataclass(frozen=True)
class PeerAnswer:
    """What it took and found; `refusal` says why there is nothing."""

    seconds: float | None = None
    version: str = ""
    found: tuple[dict[str, Any], ...] = ()
    refusal: str = ""


def find_python(given: str | None) -> str | None:
    """The Python that has aiconfigurator: the one given, or this one; None if neither has."""
    if given:
        return given
    return sys.executable if importlib.util.find_spec("aiconfigurator") else None


def ask_aiconfigurator(python: str | None, question: Question) -> PeerAnswer:
    """Ask it the same question: one pool and two, limits in milliseconds."""
    if python is None:
        return PeerAnswer(refusal="not installed: pip install aiconfigurator somewhere, and give "
                          "its Python with --aiconfigurator")  # fmt: skip
    assert question.slo.ttft is not None
    assert question.slo.tpot is not None
    asked = {
        "--model-path": PEER_MODEL,
        "--system": PEER_SYSTEM,
        "--total-gpus": question.gpus,
        "--isl": question.prompt_tokens,
        "--osl": question.output_tokens,
        "--ttft": 1e3 * question.slo.ttft,
        "--tpot": 1e3 * question.slo.tpot,
    }
    words = [str(word) for pair in asked.items() for word in pair]
    start = "from aiconfigurator.main import main; main()"
    command = [python, "-c", start, "cli", "default", "--no-color", *words]
    began = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=True)
    except subprocess.TimeoutExpired:
        return PeerAnswer(refusal=f"no answer within {DEADLINE:.0f} s")
    except OSError as error:
        return PeerAnswer(refusal=f"its Python cannot be started: {error.strerror}")
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"exit status {error.returncode}"]
        return PeerAnswer(refusal=f"it failed: {said[-1]}")
    seconds = time.perf_counter() - began
    return PeerAnswer(seconds, _version(python), tuple(ranked(done.stdout + done.stderr)))


def ranked(text: str) -> list[dict[str, Any]]:
    """The rows of its tables of best configurations, by mode."""
    found: list[dict[str, Any]] = []
    mode, headings = "", []  # type: ignore[var-annotated]
    for line in text.splitlines():
        title = _RANKED.match(line)
        if title:
            mode, headings = title[1], []
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not mode or not line.startswith("|"):
            continue
        if not headings:
            headings = cells
        elif cells[0].isdigit():
            row = dict(zip(headings, cells, strict=False))
            kept = {name: float(row[heading]) for heading, name in _HEADINGS.items()}
            layout = {key: value for key, value in row.items() if key.endswith("parallel")}
            found.append({"mode": mode, "rank": int(cells[0]), "layout": layout, **kept,
                          "replicas": row.get("replicas", "")})  # fmt: skip
    return found


def _version(python: str) -> str:
    code = "from importlib.metadata import version; print(version('aiconfigurator'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    return done.stdout.strip()
