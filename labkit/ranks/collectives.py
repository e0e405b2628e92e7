"""What each collective does to a process group: nothing checked, nothing recorded.

Every function takes a tensor of any dtype and strides, and the `torch.distributed` group.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labkit.ranks.carriers import as_moved, sum_dtype

Group = dist.ProcessGroup | None  # None: the world

# torch 2.13 renamed these two; torch 2.6 knows only the longer names.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

# gloo has no average before torch 2.13, so everywhere it is a sum, divided.
_REDUCE_OPS = {
    "sum": dist.ReduceOp.SUM,
    "avg": dist.ReduceOp.SUM,
    "max": dist.ReduceOp.MAX,
    "min": dist.ReduceOp.MIN,
}


def all_reduce(x: Tensor, op: str, group: dist.ProcessGroup) -> None:
    """Reduce over the group into `x`."""
    total = x.to(sum_dtype(x.dtype)).contiguous()
    dist.all_reduce(total, _reduce_op(op, x.dtype), group=group)
    if op == "avg":
        total /= group.size()
    _keep(total, x)


def all_gather(x: Tensor, dim: int, group: dist.ProcessGroup) -> Tensor:
    """All ranks' tensors, concatenated along `dim`."""
    parts = x.new_empty((group.size(), *x.shape))
    _all_gather(as_moved(parts.view(-1)), as_moved(x.contiguous().view(-1)), group=group)
    return parts.flatten(0, 1) if dim == 0 else torch.cat(parts.unbind(), dim)


def reduce_scatter(x: Tensor, dim: int, op: str, group: dist.ProcessGroup) -> Tensor:
    """Reduce over the group, keep my part of `dim`."""
    parts = torch.stack(x.to(sum_dtype(x.dtype)).tensor_split(group.size(), dim))
    reduce_op = _reduce_op(op, x.dtype)
    if reduce_op == dist.ReduceOp.SUM or x.is_cuda:
        mine = torch.empty_like(parts[0])
        _reduce_scatter(mine.view(-1), parts.view(-1), reduce_op, group=group)
    else:  # gloo's reduce_scatter in torch 2.6 sums whatever it is asked for
        dist.all_reduce(parts, reduce_op, group=group)
        mine = parts[group.rank()]
    if op == "avg":
        mine /= group.size()
    return mine.to(x.dtype)


def broadcast(x: Tensor, src: int, group: dist.ProcessGroup) -> None:
    """Copy world rank `src`'s tensor into `x`."""
    value = x.contiguous()
    dist.broadcast(as_moved(value), src, group=group)
    _keep(value, x)


def all_to_all(
    x: Tensor,
    input_splits: Sequence[int],
    output_splits: Sequence[int],
    group: dist.ProcessGroup,
) -> Tensor:
    """Send rows of `x` by `input_splits`, return the rows that arrive by `output_splits`."""
    row_size = x.shape[1:].numel()
    out = x.new_empty((sum(output_splits), *x.shape[1:]))
    if row_size == 0:  # on every rank alike: rows hold nothing, so there is nothing to send
        return out
    dist.all_to_all_single(
        as_moved(out.view(-1, row_size)),
        as_moved(x.contiguous().view(-1, row_size)),
        list(output_splits),
        list(input_splits),
        group=group,
    )
    return out


def send(x: Tensor, dst: int, group: Group) -> None:
    """Send to world rank `dst`."""
    dist.send(as_moved(x.contiguous()), dst, group=group)


def recv(x: Tensor, src: int, group: Group) -> None:
    """Fill `x` from world rank `src`."""
    value = x.contiguous()
    dist.recv(as_moved(value), src, group=group)
    _keep(value, x)


def send_recv(x: Tensor, dst: int, out: Tensor, src: int, group: Group) -> None:
    """Both at once."""
    value = out.contiguous()
    going, coming = as_moved(x.contiguous()), as_moved(value)
    works: Sequence[dist.Work | None]
    if x.is_cuda:
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, going, dst, group),
                dist.P2POp(dist.irecv, coming, src, group),
            ]
        )
    else:  # gloo has no batches: torch would only take longer to make the same two calls
        works = (dist.isend(going, dst, group), dist.irecv(coming, src, group))
    for work in works:
        if work is not None:  # it is where this rank is not in the group
            work.wait()
    _keep(value, out)


def _reduce_op(op: str, dtype: torch.dtype) -> Any:
    """The backend's reduction. A sum of bools is their "or": the maximum of their bytes."""
    return _REDUCE_OPS["max" if dtype == torch.bool and op == "sum" else op]


def _keep(result: Tensor, x: Tensor) -> None:
    """Copy `result` into `x` unless it is the same memory already."""
    if result.data_ptr() != x.data_ptr() or result.dtype != x.dtype:
        x.copy_(result)
