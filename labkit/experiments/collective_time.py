"""How long an all-reduce takes, by the size of what it reduces."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from labkit.ranks.comm import Comm


@dataclass(frozen=True)
class CollectiveTime:
    """Seconds of the fastest of several collectives among `ranks` ranks, `payload_bytes` each."""

    ranks: int
    payload_bytes: int
    seconds: float


@dataclass(frozen=True)
class Growth:
    """How many times the bytes, and how many times the seconds, from the first time to the last."""

    bytes: float
    seconds: float


def growth(times: Sequence[CollectiveTime]) -> Growth:
    """Compare the last of several times with the first."""
    first, last = times[0], times[-1]
    return Growth(last.payload_bytes / first.payload_bytes, last.seconds / first.seconds)


def time_all_reduce(
    comm: Comm, payload_bytes: Sequence[int], repeats: int = 30
) -> list[CollectiveTime]:
    """On every rank: all-reduce fp32 tensors of the given sizes, which are multiples of 4.

    A repeat lasts from a barrier to the end on the slowest rank, so every rank returns the same.
    The fastest repeat is the one least disturbed by whatever else the machine does.
    """
    return [
        CollectiveTime(comm.size, size, _fastest(comm, size, repeats)) for size in payload_bytes
    ]


def _fastest(comm: Comm, size: int, repeats: int) -> float:
    x = torch.ones(size // 4, dtype=torch.float32, device=comm.device)
    seconds = torch.empty(repeats, dtype=torch.float64, device=comm.device)
    comm.all_reduce(x)
    for repeat in range(repeats):
        comm.barrier()
        start = time.perf_counter()
        comm.all_reduce(x)
        if x.is_cuda:
            torch.cuda.synchronize()
        seconds[repeat] = time.perf_counter() - start
    return comm.all_reduce(seconds, op="max").min().item()
