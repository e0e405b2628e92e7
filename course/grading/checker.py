"""The process that judges: functions come in as bytes, verdicts go out as JSON.

It runs under a warden, one for each notebook. Functions are loaded on its ranks only; each exercise
gets new ranks, so that what one leaves behind on a rank costs the next one nothing.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
from dataclasses import asdict
from typing import Any

from course.exercises import load
from course.grading.case_run import JudgePools
from course.grading.judge import judge


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The verdicts on one exercise, or why there are none."""
    exercise = load(request["exercise"])
    packed = base64.b64decode(request["packed"])
    with JudgePools() as pools:
        verdicts = judge(
            exercise, packed, hidden=request["hidden"], seed=request["seed"], pools=pools
        )
    return {"verdicts": [asdict(verdict) for verdict in verdicts]}


def main() -> None:
    """Answer requests, one line of JSON each, until the other side closes."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    with channel.makefile("rb") as requests:
        for line in requests:
            try:
                reply = answer(json.loads(line))
            except Exception as error:
                reply = {"failed": f"{type(error).__name__}: {error}"}
            channel.sendall(json.dumps(reply).encode() + b"\n")


if __name__ == "__main__":
    main()
