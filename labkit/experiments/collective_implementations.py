"""Who can run a collective: torch's backends, shared memory, and our own from send and recv."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from labkit.ranks import algorithms
from labkit.ranks.comm import Comm
from labkit.ranks.transport_choice import ON_GPUS, TRANSPORTS, check_transport

Call = Callable[[Tensor], object]

OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
SEND_RECV: Mapping[str, Mapping[str, Callable[[Comm, Tensor], Tensor]]] = {
    "send/recv ring": {
        "all_reduce": algorithms.ring_all_reduce,
        "all_gather": algorithms.ring_all_gather,
        "reduce_scatter": algorithms.ring_reduce_scatter,
    },
    "send/recv recursive doubling": {"all_reduce": algorithms.recursive_doubling_all_reduce},
    "send/recv one-shot": {"all_reduce": algorithms.one_shot_all_reduce},
    "send/recv two-shot": {"all_reduce": algorithms.two_shot_all_reduce},
    "send/recv tree": {"all_reduce": algorithms.tree_all_reduce},
    "send/recv pairwise": {"all_to_all": algorithms.all_to_all},
}
IMPLEMENTATIONS = (*TRANSPORTS, *SEND_RECV)


def check_ops(names: Iterable[str]) -> tuple[str, ...]:
    """Collectives by name, each once. `all-reduce` is `all_reduce`. Raises ValueError."""
    return _known([name.replace("-", "_") for name in names], OPS, "collective")


def check_implementations(
    names: Iterable[str], ops: Sequence[str], gpus: int, ranks: int
) -> tuple[str, ...]:
    """Implementations by name, each once: what `ranks` ranks beside `gpus` GPUs can run at all.

    `shared-memory` is `shared memory`. Raises ValueError for an unknown one, one that has none of
    `ops`, and one that joins GPUs where tensors live on CPUs, or the other way round.
    """
    spelled = {name.replace(" ", "-"): name for name in IMPLEMENTATIONS}
    found = _known([spelled.get(n.replace(" ", "-"), n) for n in names], IMPLEMENTATIONS, "way")
    for name in found:
        if name in ON_GPUS and gpus < ranks:
            raise ValueError(f"{name} wants a GPU for each of {ranks} ranks; here are {gpus}")
        if name in TRANSPORTS:
            check_transport(name, "cuda" if gpus >= ranks else "cpu")
        has = SEND_RECV.get(name, OPS)
        if not set(has) & set(ops):
            raise ValueError(f"{name} has no {', '.join(ops)}; it has {', '.join(has)}")
    return found


def calls_of(comm: Comm, name: str) -> dict[str, Call]:
    """What `name` can run over `comm`: collective -> a function of one tensor from `message`.

    Every rank of `comm` asks for the same. Raises ValueError where it cannot be had, with why.
    """
    if name in SEND_RECV:
        return {op: _sending(run, comm) for op, run in SEND_RECV[name].items()}
    over = comm.over(name)
    return {op: getattr(over, op) for op in OPS}


def message(
    op: str, payload_bytes: int, ranks: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, int]:
    """A tensor that `op` takes on each rank, and the payload it stands for, in bytes.

    Where the payload is cut over the ranks it loses what does not divide. Zeros stay zeros however
    often they are summed, and they are written, so that they lie in memory of their own.
    """
    elements = payload_bytes // dtype.itemsize
    if op in ("all_gather", "reduce_scatter", "all_to_all"):
        elements -= elements % ranks
    shape: tuple[int, ...] = (elements,)
    if op == "all_gather":
        shape = (elements // ranks,)
    elif op == "all_to_all":
        shape = (ranks, elements // ranks)
    return torch.empty(shape, dtype=dtype, device=device).fill_(0), elements * dtype.itemsize


def _sending(run: Callable[[Comm, Tensor], Tensor], comm: Comm) -> Call:
    return lambda x: run(comm, x)


def _known(names: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ValueError(f"no {what} is called {name!r}; {meant}there are {', '.join(known)}")
    if not names:
        raise ValueError(f"no {what} is named; there are {', '.join(known)}")
    return tuple(dict.fromkeys(names))
