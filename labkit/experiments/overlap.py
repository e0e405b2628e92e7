"""An all-reduce beside matrix products: how much of its time the arithmetic hides.

    one after the other = products + all-reduce
    side by side        = the longer of the two, at best

What is saved can never be more than the shorter of the two. On GPUs the all-reduce runs on a stream
of its own. On CPUs it runs in a thread of its own, and sending takes cores just as multiplying
does: only its waiting can be hidden while every core already multiplies.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from labkit.experiments.provenance import Provenance
from labkit.layers.whole_number import whole_number
from labkit.ranks.comm import Comm

_INNER = 512
"""The products are of matrices with this many rows and columns: large enough to be arithmetic."""


@dataclass(frozen=True)
class OverlapTime:
    """Seconds are medians over `turns` turns, each on the slowest rank."""

    ranks: int
    transport: str
    payload_bytes: int
    products: int
    """Matrix products of one turn, chosen to take about as long as the all-reduce."""
    turns: int
    product_seconds: float
    all_reduce_seconds: float
    one_after_other_seconds: float
    side_by_side_seconds: float
    provenance: Provenance

    @property
    def hidden_seconds(self) -> float:
        """What running side by side saves; noise or a shortage of cores can make it negative."""
        return self.one_after_other_seconds - self.side_by_side_seconds

    @property
    def hidden_share(self) -> float:
        """The part hidden of what could be: 1 when the shorter of the two costs nothing more."""
        return self.hidden_seconds / min(self.product_seconds, self.all_reduce_seconds)


def time_overlap(
    comm: Comm, payload_bytes: int = 4 * 2**20, *, turns: int = 9, products: int | None = None
) -> OverlapTime:
    """On every rank: an fp32 all-reduce and products that do not depend on it, in four ways.

    A turn takes all four, so that what disturbs the machine meets them all; one more turn goes
    before, uncounted. Every rank returns the same. `products`: None chooses how many.

    Raises ValueError for one rank, or for a payload of no whole number of fp32 elements.
    """
    if comm.size < 2:
        raise ValueError("1 rank has nothing to all-reduce; want at least 2 ranks")
    if payload_bytes < 4 or payload_bytes % 4:
        raise ValueError(f"{payload_bytes} B is no whole number of fp32 elements of 4 bytes")
    turns = whole_number(turns, "turns", at_least=1)
    x = torch.zeros(payload_bytes // 4, device=comm.device)
    a = torch.ones(_INNER, _INNER, device=comm.device)

    def all_reduce() -> None:
        comm.all_reduce(x)

    def multiply(times: int) -> None:
        for _ in range(times):
            torch.mm(a, a)

    if products is None:
        products = _as_many_as_last(comm, all_reduce, multiply)
    work = _Work(comm, all_reduce, lambda: multiply(products))
    with ThreadPoolExecutor(1) as beside:
        ways = (work.products, work.all_reduce, work.one_after_other, lambda: work.both(beside))
        seconds = [[_seconds(comm, way) for way in ways] for _ in range(turns + 1)][1:]
    slowest = comm.all_reduce(
        torch.tensor(seconds, dtype=torch.float64, device=comm.device), op="max"
    )
    product, all_reduced, one_after_other, side_by_side = map(statistics.median, slowest.T.tolist())
    return OverlapTime(
        ranks=comm.size,
        transport=comm.transport.name if comm.transport else "",
        payload_bytes=payload_bytes,
        products=products,
        turns=turns,
        product_seconds=product,
        all_reduce_seconds=all_reduced,
        one_after_other_seconds=one_after_other,
        side_by_side_seconds=side_by_side,
        provenance=Provenance.here(threads=f"{torch.get_num_threads()} a rank"),
    )


@dataclass(frozen=True)
class _Work:
    comm: Comm
    all_reduce: Callable[[], None]
    products: Callable[[], None]

    def one_after_other(self) -> None:
        self.all_reduce()
        self.products()

    def both(self, beside: ThreadPoolExecutor) -> None:
        """Side by side. `beside`: the thread that all-reduces on CPUs."""
        if self.comm.device.type == "cuda":
            stream = torch.cuda.Stream(self.comm.device)
            stream.wait_stream(torch.cuda.current_stream(self.comm.device))
            with torch.cuda.stream(stream):
                self.all_reduce()
            self.products()
            torch.cuda.current_stream(self.comm.device).wait_stream(stream)
        else:
            reducing = beside.submit(self.all_reduce)
            self.products()
            reducing.result()


def _as_many_as_last(
    comm: Comm, all_reduce: Callable[[], None], multiply: Callable[[int], None]
) -> int:
    """How many products last about as long as the all-reduce, the same on every rank."""
    seconds = [[_seconds(comm, all_reduce), _seconds(comm, lambda: multiply(1))] for _ in range(6)][
        1:
    ]
    medians = torch.tensor(seconds, dtype=torch.float64, device=comm.device).median(dim=0).values
    one_all_reduce, one_product = comm.all_reduce(medians, op="max").tolist()
    return max(1, round(one_all_reduce / one_product))


def _seconds(comm: Comm, run: Callable[[], object]) -> float:
    """Seconds of `run` on this rank, begun together."""
    comm.barrier()
    start = time.perf_counter()
    run()
    if comm.device.type == "cuda":
        torch.cuda.synchronize(comm.device)
    return time.perf_counter() - start
