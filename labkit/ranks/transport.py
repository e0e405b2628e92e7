"""What carries a group's collectives: the interface, and torch's own backends behind it."""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from labkit.ranks import collectives


class Transport(Protocol):
    """One group's collectives. Every rank of the group calls the same one.

    `Comm` has checked the arguments: tensors live on the group's device, ranks are counted within
    the group. Tensors may have any dtype and strides.
    """

    name: str
    """ "gloo", "nccl", "shared memory" or "symmetric memory"."""

    def all_reduce(self, x: Tensor, op: str) -> None:
        """Reduce over the group into `x`."""

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        """All ranks' tensors, concatenated along `dim`."""
        ...

    def reduce_scatter(self, x: Tensor, dim: int, op: str) -> Tensor:
        """Reduce over the group, keep my part of `dim`."""
        ...

    def broadcast(self, x: Tensor, src: int) -> None:
        """Copy rank `src`'s tensor into `x`."""

    def all_to_all(
        self, x: Tensor, input_splits: Sequence[int], output_splits: Sequence[int]
    ) -> Tensor:
        """Send rows of `x` by `input_splits`, return the rows that arrive by `output_splits`."""
        ...

    def barrier(self) -> None:
        """Wait until every rank of the group is here."""


class BackendTransport:
    """The collectives of torch's backend for `device`: NCCL between GPUs, gloo between CPUs."""

    def __init__(self, group: dist.ProcessGroup, device: torch.device) -> None:
        self.name = "nccl" if device.type == "cuda" else "gloo"
        self._group = group
        self._device = device
        self._ranks = dist.get_process_group_ranks(group)

    def all_reduce(self, x: Tensor, op: str) -> None:
        collectives.all_reduce(x, op, self._group)

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        return collectives.all_gather(x, dim, self._group)

    def reduce_scatter(self, x: Tensor, dim: int, op: str) -> Tensor:
        return collectives.reduce_scatter(x, dim, op, self._group)

    def broadcast(self, x: Tensor, src: int) -> None:
        collectives.broadcast(x, self._ranks[src], self._group)

    def all_to_all(
        self, x: Tensor, input_splits: Sequence[int], output_splits: Sequence[int]
    ) -> Tensor:
        return collectives.all_to_all(x, input_splits, output_splits, self._group)

    def barrier(self) -> None:
        devices = [self._device.index or 0] if self._device.type == "cuda" else None
        dist.barrier(self._group, device_ids=devices)
