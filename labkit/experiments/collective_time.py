"""How long collectives take here, by who runs them and by the size of what they move."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from labkit.experiments.collective_implementations import (
    IMPLEMENTATIONS,
    Call,
    calls_of,
    message,
)
from labkit.experiments.collective_rows import CollectiveRow, CollectiveTimes
from labkit.experiments.provenance import Provenance
from labkit.ranks.comm import Comm

BURST_SECONDS = 2e-3
MOST_CALLS = 100


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


def time_collectives(
    comm: Comm,
    payload_bytes: Sequence[int],
    *,
    ops: Sequence[str] = ("all_reduce",),
    implementations: Sequence[str] | None = None,
    turns: int = 15,
    dtype: str = "float32",
    seed: int = 0,
) -> CollectiveTimes:
    """On every rank: each implementation of each collective at each size, in turns.

    A turn times every row once, in an order shuffled anew: what disturbs the machine meets all
    rows, and none always follows the same other. A row is a burst of calls, as many as fill some
    `BURST_SECONDS`, begun together: one call alone would mostly time how unequally ranks leave a
    barrier. On GPUs the calls are launched one by one (eager, no CUDA graph).

    Every rank returns the same. `implementations`: None takes all that can run here.

    Raises ValueError for one rank, or for what was asked for and cannot run.
    """
    if comm.size < 2:
        raise ValueError("1 rank sends nothing, so there is nothing to time; want at least 2 ranks")
    available, left_out = _available(comm, implementations)
    cells = [
        _Cell(comm, name, op, size, calls[op], getattr(torch, dtype))
        for op in ops
        for size in payload_bytes
        for name, calls in available.items()
        if op in calls
    ]
    for cell in cells:
        cell.warm_up()
    shuffle = random.Random(seed)
    for turn in range(turns):
        for cell in shuffle.sample(cells, len(cells)):
            cell.take_turn()
        comm.report(f"turn {turn + 1} of {turns}")
    return CollectiveTimes(
        rows=tuple(cell.row() for cell in cells),
        dtype=dtype,
        device=_device_kind(comm.device),
        order=f"{turns} turns, each of every row once, shuffled anew (random.Random({seed}))",
        left_out=left_out,
        provenance=Provenance.here(threads=f"{torch.get_num_threads()} a rank"),
    )


def _device_kind(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


class _Cell:
    """One row in the making."""

    def __init__(
        self, comm: Comm, name: str, op: str, size: int, call: Call, dtype: torch.dtype
    ) -> None:
        self._comm = comm
        self._name, self._op, self._call = name, op, call
        self._x, self._payload = message(op, size, comm.size, dtype, comm.device)
        self._calls = 1
        self._seconds: list[float] = []

    def warm_up(self) -> None:
        """Connect, then choose how many calls a turn makes, the same on every rank."""
        self._burst()
        seconds = torch.tensor(min(self._burst(), self._burst()), device=self._comm.device)
        slowest = float(self._comm.all_reduce(seconds, op="max"))
        self._calls = max(1, min(MOST_CALLS, int(BURST_SECONDS / slowest)))

    def take_turn(self) -> None:
        self._seconds.append(self._burst() / self._calls)

    def row(self) -> CollectiveRow:
        """Every rank calls it: the slowest rank's seconds count."""
        seconds = torch.tensor(self._seconds, dtype=torch.float64, device=self._comm.device)
        return CollectiveRow(
            op=self._op,
            implementation=self._name,
            ranks=self._comm.size,
            payload_bytes=self._payload,
            calls=self._calls,
            turn_seconds=tuple(self._comm.all_reduce(seconds, op="max").tolist()),
        )

    def _burst(self) -> float:
        self._comm.barrier()
        start = time.perf_counter()
        for _ in range(self._calls):
            self._call(self._x)
        if self._x.is_cuda:
            torch.cuda.synchronize(self._x.device)
        return time.perf_counter() - start


def _available(
    comm: Comm, names: Sequence[str] | None
) -> tuple[dict[str, dict[str, Call]], tuple[tuple[str, str], ...]]:
    """What can run here by name, and why the rest cannot. What was named must run."""
    available: dict[str, dict[str, Call]] = {}
    left_out = []
    for name in IMPLEMENTATIONS if names is None else names:
        try:
            available[name] = calls_of(comm, name)
        except ValueError as reason:
            if names is not None:
                raise
            left_out.append((name, str(reason)))
    return available, tuple(left_out)
