"""Collectives made of sends and receives, each with its cost; read `ring.py` first.

Every function takes the group and this rank's tensor, leaves the tensor alone, and returns a new
one: `ring_all_reduce(comm, x)`. With `record=Record()` it writes down its steps, and
`merge_records` of all ranks' records says who held whose values after each.

    ring.py       all-reduce, reduce-scatter, all-gather: fewest bytes, most steps
    doubling.py   recursive doubling: fewest steps in which everyone ends with the sum
    tree.py       up to rank 0 and down again
    shots.py      one-shot and two-shot: everyone to everyone, summed in a fixed order
    exchange.py   all-to-all
    order.py      which of them give an element's sum the same bits in every message
"""

from labkit.ranks.algorithm_record import Record, StepRecord, merge_records
from labkit.ranks.algorithms.catalogue import ALGORITHMS, Algorithm
from labkit.ranks.algorithms.doubling import recursive_doubling_all_reduce
from labkit.ranks.algorithms.exchange import all_to_all
from labkit.ranks.algorithms.order import OrderRow, OrderStudy, order_study
from labkit.ranks.algorithms.ring import (
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from labkit.ranks.algorithms.shots import (
    fixed_order_all_reduce,
    one_shot_all_reduce,
    two_shot_all_reduce,
)
from labkit.ranks.algorithms.tree import tree_all_reduce

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "OrderRow",
    "OrderStudy",
    "Record",
    "StepRecord",
    "all_to_all",
    "fixed_order_all_reduce",
    "merge_records",
    "one_shot_all_reduce",
    "order_study",
    "recursive_doubling_all_reduce",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_reduce_scatter",
    "tree_all_reduce",
    "two_shot_all_reduce",
]
