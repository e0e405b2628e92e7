"""Linear layers over tensor parallel ranks: `Y = X Wᵀ + b` with `W` cut one way or the other.

Cut by output (column parallel): every rank has all of `X` and computes its own columns of `Y`.
Nothing is sent, unless the caller wants `Y` whole (`gather_output`).
Cut by input (row parallel): every rank has some columns of `X` and a partial sum of all of `Y`.
One all-reduce adds the partial sums up.
A column parallel layer feeds a row parallel one as it is: that pair costs one all-reduce.

Shape suffixes: B batch, T tokens, I input features, O output features; `/r` on this rank only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from labkit.layers.source import WeightSource, read_part
from labkit.layers.weight import PackedWeight
from labkit.plan.shard import HeadPartition, even_range, partition_columns
from labkit.ranks.comm import Comm


class MergedColumnParallelLinear(nn.Module):
    """Several column parallel layers with the same input, done as one product.

    Each part is cut on its own and only then are the cuts joined, so a rank's output is
    `[part 0 /r, part 1 /r, ...]`. Cutting the joined matrix would give ranks the wrong rows.
    """

    def __init__(
        self,
        in_features: int,
        out_sizes: Sequence[int],
        comm: Comm,
        *,
        bias: bool = False,
        out_ranges: Sequence[range] | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        """`out_sizes` are the whole widths of the parts. `out_ranges` names this rank's output
        features of each part where they are not cut evenly.

        Raises:
            PartitionError: a part does not divide over the group.
        """
        super().__init__()
        if out_ranges is None:
            out_ranges = [
                even_range(size, comm.size, comm.rank, "output features") for size in out_sizes
            ]
        self.in_features = in_features
        self.out_sizes = tuple(out_sizes)
        self.local_rows = tuple(out_ranges)
        self.comm = comm
        self.has_bias = bias
        self.dtype = dtype
        self.device = torch.device(device or comm.device)

    @property
    def local_sizes(self) -> tuple[int, ...]:
        """The width of each part on this rank."""
        return tuple(len(rows) for rows in self.local_rows)

    def load(self, source: WeightSource, *names: str) -> None:
        """Read this rank's rows of `{name}.weight` (and `.bias`), one name for each part."""
        if len(names) != len(self.out_sizes):
            raise ValueError(f"{len(self.out_sizes)} parts need a name each, got {list(names)}")
        read = partial(read_part, source, dtype=self.dtype, device=self.device)
        parts = list(zip(names, self.out_sizes, self.local_rows, strict=True))
        weights = [
            read(f"{name}.weight", (size, self.in_features), rows, None)
            for name, size, rows in parts
        ]
        biases = [
            read(f"{name}.bias", (size,), rows) for name, size, rows in parts if self.has_bias
        ]
        self.weight = PackedWeight(_joined(weights), _joined(biases) if biases else None)

    def forward(self, x_BTI: Tensor) -> Tensor:
        """x `[..., I]` -> this rank's columns of every part, `[..., O/r]`."""
        return self.weight.matmul(x_BTI)


class ColumnParallelLinear(MergedColumnParallelLinear):
    """One linear layer cut by output features."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        comm: Comm,
        *,
        bias: bool = False,
        gather_output: bool = False,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(in_features, [out_features], comm, bias=bias, dtype=dtype, device=device)
        self.gather_output = gather_output

    def forward(self, x_BTI: Tensor) -> Tensor:
        """x `[..., I]` -> `[..., O/r]`, or `[..., O]` with `gather_output`."""
        y = self.weight.matmul(x_BTI)
        return self.comm.all_gather(y, dim=-1) if self.gather_output else y


class QKVParallelLinear(MergedColumnParallelLinear):
    """Queries, keys and values in one product, each cut by its own heads.

    With more ranks than KV heads the ranks that share a KV head all hold its rows.
    """

    def __init__(
        self,
        hidden_size: int,
        head_dim: int,
        heads: HeadPartition,
        comm: Comm,
        *,
        bias: bool = False,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        q_heads, kv_heads = heads.q_heads(comm.rank), heads.kv_heads(comm.rank)
        q_size, kv_size = heads.num_heads * head_dim, heads.num_kv_heads * head_dim
        super().__init__(
            hidden_size,
            [q_size, kv_size, kv_size],
            comm,
            bias=bias,
            out_ranges=[
                range(part.start * head_dim, part.stop * head_dim)
                for part in (q_heads, kv_heads, kv_heads)
            ],
            dtype=dtype,
            device=device,
        )


class RowParallelLinear(nn.Module):
    """One linear layer cut by input features; the output is whole on every rank."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        comm: Comm,
        *,
        bias: bool = False,
        input_is_parallel: bool = True,
        in_ranges: Sequence[range] | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        """`in_ranges` names the input features of each rank where they are not cut evenly.

        Raises:
            PartitionError: `in_features` does not divide over the group.
        """
        super().__init__()
        if in_ranges is None:
            in_ranges = partition_columns(in_features, comm.size, "input features")
        self.in_features = in_features
        self.out_features = out_features
        self.local_columns = in_ranges[comm.rank]
        self.comm = comm
        self.input_is_parallel = input_is_parallel
        self.has_bias = bias
        self.dtype = dtype
        self.device = torch.device(device or comm.device)

    def load(self, source: WeightSource, name: str) -> None:
        """Read this rank's columns of `{name}.weight`; rank 0 alone reads `{name}.bias`."""
        shape = (self.out_features, self.in_features)
        read = partial(read_part, source, dtype=self.dtype, device=self.device)
        weight = read(f"{name}.weight", shape, None, self.local_columns)
        bias = None
        if self.has_bias and self.comm.rank == 0:
            bias = read(f"{name}.bias", (self.out_features,))
        self.weight = PackedWeight(weight, bias)

    def forward(self, x_BTI: Tensor) -> Tensor:
        """x `[..., I/r]` (or `[..., I]` unless `input_is_parallel`) -> `[..., O]`.

        Rank 0's partial sum carries the bias, so the total has it once.
        """
        if not self.input_is_parallel:
            x_BTI = x_BTI[..., self.local_columns.start : self.local_columns.stop]
        return self.comm.all_reduce(self.weight.matmul(x_BTI))


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
