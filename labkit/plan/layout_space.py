"""Every layout that a number of GPUs allows, and how a layout is said in words.

The sizes tried for each axis are the divisors of the number of GPUs, those of a node, and powers of
two. Where a replica does not divide the GPUs, the rest idles. Nothing here asks whether a model can
be cut that way: `labkit.plan.legality` does.
"""

from __future__ import annotations

from collections.abc import Iterator

from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.shard import counted, divisors


def axis_sizes(gpus: int, gpus_per_node: int) -> tuple[int, ...]:
    """The sizes that an axis may have, rising."""
    powers = [2**exponent for exponent in range(gpus.bit_length())]
    every = {*divisors(gpus), *divisors(gpus_per_node), *powers}
    return tuple(size for size in sorted(every) if size <= gpus)


def layouts(model: ModelSpec, gpus: int, gpus_per_node: int) -> Iterator[Layout]:
    """Layouts of TP x PP x DP x EP with as many replicas as the GPUs hold.

    DP and EP stay 1 for a model without experts, where a DP copy would be a replica. PP stops at
    the number of layers.
    """
    sizes = axis_sizes(gpus, gpus_per_node)
    whole = set(divisors(gpus))
    for tp in sizes:
        for pp in sizes:
            if tp * pp > gpus or pp > model.num_layers:
                break
            for dp in sizes if model.is_moe else (1,):
                replica = tp * pp * dp
                if replica > gpus:
                    break
                if replica not in whole and not _is_plain(tp, pp, dp, gpus_per_node):
                    continue
                for ep in divisors(tp * dp) if model.is_moe else (1,):
                    yield Layout(tp, pp, dp, ep, gpus // replica)


def _is_plain(tp: int, pp: int, dp: int, gpus_per_node: int) -> bool:
    """Whether a replica may leave GPUs idle: parts of a node, or whole nodes."""
    size = tp * pp * dp
    return size in divisors(gpus_per_node) or not size % gpus_per_node


def layout_title(layout: Layout) -> str:
    """`2 replicas x TP 4`, `TP 4 x PP 2`, `TP 1 x DP 8 x EP 8`."""
    axes = [("TP", layout.tp), ("PP", layout.pp), ("DP", layout.dp), ("EP", layout.ep)]
    said = [f"{name} {size}" for name, size in axes if size > 1 or name == "TP"]
    if layout.replicas > 1:
        said.insert(0, counted(layout.replicas, "replica"))
    return " x ".join(said)


def gpu_arithmetic(layout: Layout) -> str:
    """`40 replicas x 2 GPUs = 80 GPUs`."""
    replicas, each = counted(layout.replicas, "replica"), counted(layout.replica_size, "GPU")
    return f"{replicas} x {each} = {counted(layout.world_size, 'GPU')}"
