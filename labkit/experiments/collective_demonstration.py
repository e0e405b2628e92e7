"""What each collective moves and leaves where, in small numbers; and what each algorithm sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.ranks.algorithms import ALGORITHMS
from labkit.ranks.comm import Comm
from labkit.ranks.trace import TracedComm


@dataclass(frozen=True)
class Demonstration:
    """One rank's tensor before and after a collective."""

    op: str
    before: tuple[int, ...]
    after: tuple[int, ...]


def demonstrate(comm: Comm) -> list[Demonstration]:
    """On every rank: run each collective once on numbers that tell whose they are.

    Rank r has the numbers 10 (r+1) + 1, + 2, ... : the tens say the rank, the ones the place.
    """

    def numbers(count: int) -> Tensor:
        return 10 * (comm.rank + 1) + torch.arange(1, count + 1, device=comm.device)

    calls: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
        "all_reduce": (comm.size, comm.all_reduce),
        "reduce_scatter": (comm.size, comm.reduce_scatter),
        "all_gather": (1, comm.all_gather),
        "broadcast": (comm.size, comm.broadcast),
        "all_to_all": (comm.size, comm.all_to_all),
    }
    found = []
    for op, (count, call) in calls.items():
        x = numbers(count)
        before = tuple(x.tolist())
        found.append(Demonstration(op, before, tuple(call(x).tolist())))
    return found


@dataclass(frozen=True)
class AlgorithmTraffic:
    """What one rank sent in an algorithm, counted.

    payload_bytes: of the whole tensor, as `plan.collectives` counts it: for an all-gather, what
    each rank ends with.
    """

    name: str
    title: str
    ranks: int
    payload_bytes: int
    messages: int
    wire_bytes: int


def count_algorithm_traffic(comm: Comm, payload_bytes: int) -> list[AlgorithmTraffic]:
    """On every rank: run each algorithm of `ranks.algorithms` and count its messages and bytes.

    Raises ValueError where the payload, in fp32, does not divide over the ranks.
    """
    elements, left = divmod(payload_bytes, 4 * comm.size)
    if left:
        below = 4 * comm.size * elements
        raise ValueError(
            f"{payload_bytes} B do not divide into fp32 chunks for {comm.size} ranks; "
            f"take {below} or {below + 4 * comm.size}"
        )
    found = []
    for name, algorithm in ALGORITHMS.items():
        traced = TracedComm(comm)
        parts = 1 if algorithm.op == "all_gather" else comm.size
        algorithm.run(traced, torch.ones(parts * elements, device=comm.device))
        sends = [event for event in traced.trace if event.op in ("send", "send_recv")]
        sent = sum(event.wire_bytes for event in sends)
        found.append(
            AlgorithmTraffic(name, algorithm.title, comm.size, payload_bytes, len(sends), sent)
        )
    return found
