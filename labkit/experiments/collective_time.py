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
    The sizes take turns, after a turn that does not count: what disturbs or warms the machine
    meets them all. The fastest repeat is the one least disturbed.
    """
    tensors = [
        torch.ones(size // 4, dtype=torch.float32, device=comm.device) for size in payload_bytes
    ]
    seconds = torch.tensor(
        [[_one_time(comm, x) for x in tensors] for _ in range(repeats + 1)],
        dtype=torch.float64,
        device=comm.device,
    )
    fastest = comm.all_reduce(seconds, op="max")[1:].amin(dim=0).tolist()
    return [
        CollectiveTime(comm.size, size, second)
        for size, second in zip(payload_bytes, fastest, strict=True)
    ]


def _one_time(comm: Comm, x: torch.Tensor) -> float:
    comm.barrier()
    start = time.perf_counter()
    comm.all_reduce(x, op="max")
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start
