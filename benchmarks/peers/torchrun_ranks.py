"""Serving requests on the ranks of a torchrun job: rank 0 talks, the others follow."""

from __future__ import annotations

import sys
from datetime import timedelta

import torch.distributed as dist

from benchmarks.protocol import MARK, READY, Request, Run, answer, decode_request, encode

IDLE_LIMIT = timedelta(hours=1)
"""Ranks wait in a broadcast between requests; the benchmark ends them sooner by closing stdin."""


def serve_on_ranks(run: Run) -> None:
    """Call `run` with every request on every rank, until rank 0's standard input ends."""
    dist.init_process_group("gloo", timeout=IDLE_LIMIT)
    is_leader = dist.get_rank() == 0
    if is_leader:
        print(MARK + encode(READY), flush=True)
    while True:
        line = sys.stdin.readline() if is_leader else ""
        request: list[Request | None] = [decode_request(line) if line else None]
        dist.broadcast_object_list(request, src=0)
        if request[0] is None:
            break
        reply = answer(run, request[0])
        if is_leader:
            print(MARK + encode(reply), flush=True)
        elif reply.error:
            print(reply.error, file=sys.stderr, flush=True)
    dist.destroy_process_group()
