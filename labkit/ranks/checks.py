"""What a collective refuses before anything is sent: each rule once, each error a sentence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labkit.ranks.carriers import sum_dtype

if TYPE_CHECKING:
    from labkit.ranks.comm import Comm

REDUCTIONS = ("sum", "max", "min", "avg")


def check_device(op: str, x: Tensor, device: torch.device) -> None:
    """`x` must live on the kind of device its group works on."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{op} takes a tensor, not {type(x).__name__}; torch.as_tensor makes one")
    if x.device.type != device.type:
        raise ValueError(
            f"{op} got a tensor on {x.device}, and this group works on {device}; "
            f"move it with .to(comm.device)"
        )


def check_in_place(op: str, x: Tensor) -> None:
    """An in-place result needs one memory cell per element; an expanded tensor shares cells."""
    shared = [d for d, step in enumerate(x.stride()) if step == 0 and x.shape[d] > 1]
    if shared and x.numel():
        raise ValueError(
            f"{op} writes its result into the tensor, and dim {shared[0]} of this one is expanded "
            f"(stride 0, elements share memory); pass .contiguous()"
        )


def check_reduction(op: str, reduction: str, dtype: torch.dtype) -> None:
    """The reduction must exist and make sense for `dtype`."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"{op} knows no reduction {reduction!r}; it knows {', '.join(REDUCTIONS)}")
    if reduction == "avg" and not dtype.is_floating_point:
        name = str(dtype).removeprefix("torch.")
        raise ValueError(f"{op}: avg of {name} would have to round; sum it, or use float32")
    if sum_dtype(dtype) is None:
        name = str(dtype).removeprefix("torch.")
        raise ValueError(f"{op} cannot reduce {name}; float32, bfloat16 and int64 it can")


def check_rank(op: str, rank: int, size: int) -> None:
    """`rank` is a rank of a group of `size`."""
    if not 0 <= rank < size:
        legal = "0" if size == 1 else f"0 to {size - 1}"
        raise ValueError(f"{op} names rank {rank}, and a group of {size} has ranks {legal}")


def check_peer(op: str, peer: int, comm: "Comm") -> int:
    """`peer` is another rank of the group; returns its world rank."""
    check_rank(op, peer, comm.size)
    if peer == comm.rank:
        raise ValueError(
            f"{op} on rank {comm.rank} names itself; the other side must be another rank"
        )
    return comm.ranks[peer]


def normal_dim(op: str, x: Tensor, dim: int) -> int:
    """`dim` counted from the front."""
    if x.dim() == 0:
        raise ValueError(f"{op} works along a dim, and a 0-d tensor has none; use x.reshape(1)")
    if not -x.dim() <= dim < x.dim():
        raise ValueError(
            f"{op} along dim {dim}: a tensor of {x.dim()} dims has dims 0 to {x.dim() - 1}"
        )
    return dim % x.dim()


def check_divides(op: str, length: int, dim: int, size: int) -> None:
    """`length` must cut into `size` equal parts."""
    if length % size:
        below = length // size * size
        raise ValueError(
            f"{op} cuts dim {dim} into {size} equal parts, and {length} does not divide by {size}; "
            f"the nearest lengths that do are {below} and {below + size}"
        )


def check_splits(name: str, splits: Sequence[int], size: int, rows: int | None = None) -> list[int]:
    """Splits: one count >= 0 per rank; with `rows` given they must add up to it."""
    counts = [int(n) for n in splits]
    if len(counts) != size:
        raise ValueError(
            f"{name} {counts} has {len(counts)} entries; a group of {size} needs {size}"
        )
    if min(counts) < 0:
        raise ValueError(
            f"{name} {counts} has a negative count; use 0 for a rank that gets nothing"
        )
    if rows is not None and sum(counts) != rows:
        raise ValueError(f"{name} {counts} add up to {sum(counts)}, and the tensor has {rows} rows")
    return counts


def check_groups(groups: Sequence[Sequence[int]], size: int, allow_rest: bool) -> None:
    """Groups must be ascending, disjoint, and (unless `allow_rest`) cover every rank."""
    owner: dict[int, tuple[int, ...]] = {}
    for group in map(tuple, groups):
        if not group:
            raise ValueError("split got an empty group; leave it out")
        if list(group) != sorted(set(group)):
            raise ValueError(
                f"split wants the ranks of a group in ascending order, once each: "
                f"{group} should be {tuple(sorted(set(group)))}"
            )
        for rank in group:
            check_rank("split", rank, size)
            if rank in owner:
                raise ValueError(f"split puts rank {rank} in both {owner[rank]} and {group}")
            owner[rank] = group
    rest = [rank for rank in range(size) if rank not in owner]
    if rest and not allow_rest:
        raise ValueError(
            f"split leaves rank {', '.join(map(str, rest))} of {size} in no group; name a group "
            f"for each rank, or pass allow_rest=True to give each of the rest a group of its own"
        )


def check_own_split(rank: int, sent: Sequence[int], came: Sequence[int]) -> None:
    """What a rank keeps for itself leaves and arrives once."""
    if sent[rank] != came[rank]:
        raise ValueError(
            f"rank {rank} keeps {sent[rank]} rows by its input_splits and {came[rank]} by its "
            f"output_splits; output_splits[r] is what rank r's input_splits hold for rank {rank}"
        )


def check_exchange(x: Tensor, dst: int, out: Tensor, src: int, comm: "Comm") -> None:
    """Both sides exist; a rank that sends to itself (a ring of one) receives that very tensor."""
    check_rank("send_recv", dst, comm.size)
    check_rank("send_recv", src, comm.size)
    if (dst == comm.rank) != (src == comm.rank):
        raise ValueError(
            f"send_recv on rank {comm.rank} sends to {dst} and receives from {src}; "
            f"a rank that sends to itself must receive from itself"
        )
    if dst == comm.rank and (x.shape, x.dtype) != (out.shape, out.dtype):
        raise ValueError(
            f"send_recv to itself: {tuple(x.shape)} {x.dtype} does not fit into "
            f"{tuple(out.shape)} {out.dtype}"
        )
