"""All-reduce by kernels that read the other GPUs' memory: torch's symmetric memory.

Each rank copies its tensor into a buffer that the others have mapped. Then one kernel does it all:

    one-shot: every rank reads all buffers and sums them itself: one exchange, (n-1) S bytes read
    two-shot: every rank sums its part and writes it to all: two exchanges, 2 (n-1)/n S bytes
    multimem: two-shot in which the NVSwitch sums and copies (multicast), where there is one

Small messages go one-shot, larger ones multimem or two-shot. What the kernels do not take (other
reductions and dtypes, tensors beyond the buffer) and all other collectives go through NCCL.

The interface is torch's `torch.distributed._symmetric_memory`, which torch calls alpha. Written
against its source in torch 2.6 to 2.13; **not yet run on a GPU**. Several streams must not use
one group at the same time: they would share its buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from labkit.ranks.transport import BackendTransport, Transport

BUFFER_BYTES = 32 * 2**20
ONE_SHOT_BYTES = {2: BUFFER_BYTES, 4: 512 * 2**10, 8: 256 * 2**10}
"""Number of ranks -> the largest message that goes one-shot (assumed: vLLM's custom kernel switches
there). Between two ranks both read as many bytes, and one-shot has one exchange less."""
_DTYPES = (torch.float32, torch.bfloat16)
_ALIGNMENT = 16
"""Bytes: the widest load of the kernels, which want every rank's part to be a multiple."""


class SymmetricMemory:
    """One group's collectives. Make it with `attempt`."""

    name = "symmetric memory"

    def __init__(
        self, group: dist.ProcessGroup, buffer: Tensor, has_multicast: bool, rest: Transport
    ) -> None:
        """`buffer`: bytes that all ranks of `group` have mapped; `rest` runs what is not ours."""
        self._group_name = group.group_name
        self._size = group.size()
        self._buffer = buffer
        self._has_multicast = has_multicast
        self._rest = rest

    def all_reduce(self, x: Tensor, op: str) -> None:
        """Reduce over the group into `x`."""
        how = self.how(x.numel() * x.itemsize, x.dtype, op)
        if how == "nccl":
            self._rest.all_reduce(x, op)
            return
        padded = math.ceil(x.numel() * x.itemsize / _ALIGNMENT) * _ALIGNMENT
        shared = self._buffer[:padded].view(x.dtype)
        mine = shared[: x.numel()].view(x.shape)
        mine.copy_(x)
        if how == "one-shot":
            total = torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", self._group_name)
            mine = total[: x.numel()].view(x.shape)
        elif how == "multimem":
            torch.ops.symm_mem.multimem_all_reduce_(shared, "sum", self._group_name)
        else:
            torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", self._group_name)
        x.copy_(mine)
        if op == "avg":
            x /= self._size

    def how(self, num_bytes: int, dtype: torch.dtype, op: str) -> str:
        """one-shot, two-shot, multimem or nccl: the same on every rank."""
        can = dtype in _DTYPES and op in ("sum", "avg") and 0 < num_bytes <= BUFFER_BYTES
        if not can:
            return "nccl"
        if num_bytes <= one_shot_bytes(self._size):
            return "one-shot"
        return "multimem" if self._has_multicast else "two-shot"

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        """All ranks' tensors, concatenated along `dim`."""
        return self._rest.all_gather(x, dim)

    def reduce_scatter(self, x: Tensor, dim: int, op: str) -> Tensor:
        """Reduce over the group, keep my part of `dim`."""
        return self._rest.reduce_scatter(x, dim, op)

    def broadcast(self, x: Tensor, src: int) -> None:
        """Copy rank `src`'s tensor into `x`."""
        self._rest.broadcast(x, src)

    def all_to_all(
        self, x: Tensor, input_splits: Sequence[int], output_splits: Sequence[int]
    ) -> Tensor:
        """Send rows of `x` by `input_splits`, return the rows that arrive by `output_splits`."""
        return self._rest.all_to_all(x, input_splits, output_splits)

    def barrier(self) -> None:
        """Wait until every rank of the group is here."""
        self._rest.barrier()


def one_shot_bytes(ranks: int) -> int:
    """The largest message that `ranks` ranks all-reduce in one exchange."""
    return next((size for most, size in ONE_SHOT_BYTES.items() if ranks <= most), 0)


def attempt(group: dist.ProcessGroup, device: torch.device) -> tuple[SymmetricMemory | None, str]:
    """The transport, or None; and why, in a sentence. Every rank of `group` calls it.

    The ranks agree before they map memory and again after it, so that all get the same answer.
    """
    reason = _own_reason(device)
    if device.type != "cuda":  # on every rank alike: a group's tensors live on one kind of device
        return None, reason
    reason = _first_reason(group, reason) or _first_reason(group, _peer_reason(group, device))
    if reason:
        return None, reason
    buffer, has_multicast, reason = _map_buffer(group, device)
    reason = _first_reason(group, reason)
    if reason or buffer is None:
        return None, reason
    rest = BackendTransport(group, device)
    kind = "multicast" if has_multicast else "no multicast"
    why = f"each GPU of the {group.size()} ranks can read the others' memory ({kind})"
    return SymmetricMemory(group, buffer, has_multicast, rest), why


def _own_reason(device: torch.device) -> str:
    """Why this rank cannot take part, as far as it can tell alone; empty if it can."""
    if device.type != "cuda":
        return f"symmetric memory joins GPUs, and these tensors live on {device.type}"
    try:
        import_module("torch.distributed._symmetric_memory")
    except ImportError as missing:
        return f"this torch {torch.__version__} has no symmetric memory ({missing})"
    if not hasattr(torch.ops.symm_mem, "one_shot_all_reduce"):
        return f"this torch {torch.__version__} has no one-shot all-reduce on symmetric memory"
    if torch.cuda.get_device_capability(device) < (8, 0):
        return f"{torch.cuda.get_device_name(device)} is older than what its kernels are built for"
    return ""


def _peer_reason(group: dist.ProcessGroup, device: torch.device) -> str:
    """Why this rank's GPU cannot read a peer's: another machine, the same GPU, no path."""
    places: list[tuple[str, int] | None] = [None] * group.size()
    dist.all_gather_object(places, (_boot_id(), device.index or 0), group=group)
    mine = places[group.rank()]
    for peer, place in enumerate(places):
        if place is None or mine is None or peer == group.rank():
            continue
        if place[0] != mine[0]:
            return f"rank {peer} of the group runs on another machine than rank {group.rank()}"
        if place[1] == mine[1]:
            return f"ranks {peer} and {group.rank()} of the group both call their GPU {device}"
        if not torch.cuda.can_device_access_peer(mine[1], place[1]):
            return f"GPU {mine[1]} cannot read the memory of GPU {place[1]}"
    return ""


def _map_buffer(group: dist.ProcessGroup, device: torch.device) -> tuple[Tensor | None, bool, str]:
    """A buffer mapped by every rank, whether the hardware can multicast to it, or why not."""
    symmetric = import_module("torch.distributed._symmetric_memory")
    try:
        buffer = symmetric.empty(BUFFER_BYTES, dtype=torch.uint8, device=device)
        handle = symmetric.rendezvous(buffer, group.group_name)
        return buffer, handle.multicast_ptr != 0, ""
    except RuntimeError as error:
        return None, False, f"torch could not map symmetric memory: {str(error).splitlines()[0]}"


def _first_reason(group: dist.ProcessGroup, reason: str) -> str:
    """The first rank's reason against it, on every rank; empty if no rank has one."""
    reasons: list[str | None] = [None] * group.size()
    dist.all_gather_object(reasons, reason, group=group)
    return next((said for said in reasons if said), "")


def _boot_id() -> str:
    """The same for all processes of one running machine."""
    file = Path("/proc/sys/kernel/random/boot_id")
    return file.read_text().strip() if file.exists() else ""
