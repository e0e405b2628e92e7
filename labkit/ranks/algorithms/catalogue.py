"""Every algorithm by name, each with the model of its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from torch import Tensor

from labkit.plan import collectives
from labkit.ranks.algorithms.doubling import recursive_doubling_all_reduce
from labkit.ranks.algorithms.exchange import all_to_all
from labkit.ranks.algorithms.ring import (
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from labkit.ranks.algorithms.shots import one_shot_all_reduce, two_shot_all_reduce
from labkit.ranks.algorithms.tree import tree_all_reduce

Cost = (
    type[collectives.Ring]
    | type[collectives.RingReduceScatter]
    | type[collectives.RingAllGather]
    | type[collectives.RecursiveDoubling]
    | type[collectives.Tree]
    | type[collectives.OneShot]
    | type[collectives.TwoShot]
    | type[collectives.AllToAll]
)


@dataclass(frozen=True)
class Algorithm:
    """A collective made of sends and receives.

    name: as in the code. title: as in a sentence. op: the collective that it is.
    run: `run(comm, x)`, with `record=` for its steps. cost: makes the model from a latency in
    seconds and a bandwidth in bytes per second.
    """

    name: str
    title: str
    op: str
    run: Callable[..., Tensor]
    cost: Cost


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        run.__name__: Algorithm(run.__name__, title, op, run, cost)
        for run, title, op, cost in (
            (ring_all_reduce, "ring all-reduce", "all_reduce", collectives.Ring),
            (
                recursive_doubling_all_reduce,
                "recursive doubling",
                "all_reduce",
                collectives.RecursiveDoubling,
            ),
            (tree_all_reduce, "tree all-reduce", "all_reduce", collectives.Tree),
            (one_shot_all_reduce, "one-shot all-reduce", "all_reduce", collectives.OneShot),
            (two_shot_all_reduce, "two-shot all-reduce", "all_reduce", collectives.TwoShot),
            (
                ring_reduce_scatter,
                "ring reduce-scatter",
                "reduce_scatter",
                collectives.RingReduceScatter,
            ),
            (ring_all_gather, "ring all-gather", "all_gather", collectives.RingAllGather),
            (all_to_all, "all-to-all", "all_to_all", collectives.AllToAll),
        )
    }
)
