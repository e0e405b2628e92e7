"""Why a tensor parallel block is cut by columns, then by rows: every other placement, tried.

A block is `y = silu(x W1ᵀ) W2ᵀ`. A linear layer cut by columns needs its whole input and leaves its
output cut; one cut by rows takes a cut input and leaves a partial sum. Only the order column, row
makes the output of the first what the second wants, so that one all-reduce serves both. The sum
cannot wait any longer: silu and the norm before the next block give something else for a part of
a sum than for the sum.

Shape suffixes: T tokens, D hidden size, F width of the block; `/r` on this rank only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, silu

from labkit.plan.shard import even_range
from labkit.ranks.comm import Comm
from labkit.ranks.trace import TracedComm

TOKENS, HIDDEN, WIDTH = 4, 24, 96
Placement = Callable[[Comm, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Outcome:
    """What one placement cost a rank, and whether it computed the block."""

    name: str
    all_reduces: int
    all_gathers: int
    payload_bytes: int
    wire_bytes: int
    """What the rank sends, were the collectives rings (modelled)."""
    max_abs_error: float
    """Against the same block on one rank, in fp64."""

    @property
    def is_right(self) -> bool:
        """Whether the difference is no more than rounding."""
        return self.max_abs_error < 1e-9


def try_block_placements(comm: Comm) -> list[Outcome]:
    """On every rank: one block, cut in each way of `BLOCK_PLACEMENTS`."""
    return _outcomes(comm, BLOCK_PLACEMENTS, column_then_row)


def try_layer_placements(comm: Comm) -> list[Outcome]:
    """On every rank: a layer of two blocks, the first of which stands in for attention."""
    return _outcomes(comm, LAYER_PLACEMENTS, two_all_reduces)


# -- one block ---------------------------------------------------------------------------------


def column_then_row(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """The library's way: nothing is sent between the two."""
    return comm.all_reduce(_partial_sum(comm, x_TD, w1_FD, w2_DF))


def column_then_column(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """The second wants all of F, and leaves D cut: a gather after each."""
    h_TF = comm.all_gather(silu(x_TD @ _rows(comm, w1_FD).T), dim=-1)
    return comm.all_gather(h_TF @ _rows(comm, w2_DF).T, dim=-1)


def row_then_row(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """Each leaves a partial sum: a reduce after each, the first of them F wide."""
    h_TF = silu(comm.all_reduce(_columns(comm, x_TD) @ _columns(comm, w1_FD).T))
    return comm.all_reduce(_columns(comm, h_TF) @ _columns(comm, w2_DF).T)


def row_then_column(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """A partial sum after the first, a cut output after the second."""
    h_TF = silu(comm.all_reduce(_columns(comm, x_TD) @ _columns(comm, w1_FD).T))
    return comm.all_gather(h_TF @ _rows(comm, w2_DF).T, dim=-1)


def silu_of_partial_sums(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """Row, row and only the last reduce: silu(a) + silu(b) is not silu(a + b)."""
    h_TF = silu(_columns(comm, x_TD) @ _columns(comm, w1_FD).T)
    return comm.all_reduce(h_TF @ w2_DF.T)


def no_all_reduce(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """Each rank goes on with its own part of the sum."""
    return _partial_sum(comm, x_TD, w1_FD, w2_DF)


BLOCK_PLACEMENTS: Mapping[str, Placement] = {
    "column, then row": column_then_row,
    "column, then column": column_then_column,
    "row, then column": row_then_column,
    "row, then row": row_then_row,
    "row, then row, silu on partial sums": silu_of_partial_sums,
    "column, then row, never reduced": no_all_reduce,
}


# -- a layer: two blocks, each on normalised input and added to x --------------------------------


def two_all_reduces(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """The library's way: x is whole again before the norm of the next block."""
    x_TD = x_TD + comm.all_reduce(_partial_sum(comm, _norm(x_TD), w1_FD, w2_DF))
    return x_TD + comm.all_reduce(_partial_sum(comm, _norm(x_TD), w1_FD, w2_DF))


def one_all_reduce_at_the_end(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """The second block starts from a part of the first one's sum."""
    first = _partial_sum(comm, _norm(x_TD), w1_FD, w2_DF)
    second = _partial_sum(comm, _norm(x_TD + first), w1_FD, w2_DF)
    return x_TD + comm.all_reduce(first + second)


LAYER_PLACEMENTS: Mapping[str, Placement] = {
    "an all-reduce after each block": two_all_reduces,
    "one all-reduce at the end of the layer": one_all_reduce_at_the_end,
}


# -- inside ------------------------------------------------------------------------------------


def _partial_sum(comm: Comm, x_TD: Tensor, w1_FD: Tensor, w2_DF: Tensor) -> Tensor:
    """Column, then row, before the all-reduce: `[T, D]`, this rank's part of the sum."""
    return silu(x_TD @ _rows(comm, w1_FD).T) @ _columns(comm, w2_DF).T


def _rows(comm: Comm, weight: Tensor) -> Tensor:
    """This rank's output features of a weight `[O, I]`: the cut called column parallel."""
    mine = even_range(weight.shape[0], comm.size, comm.rank, "output features")
    return weight[mine.start : mine.stop]


def _columns(comm: Comm, x: Tensor) -> Tensor:
    """This rank's part of the last dim: the input features of a weight, or those of x."""
    mine = even_range(x.shape[-1], comm.size, comm.rank, "input features")
    return x[..., mine.start : mine.stop]


def _norm(x_TD: Tensor) -> Tensor:
    return rms_norm(x_TD, x_TD.shape[-1:])


def _numbers() -> tuple[Tensor, Tensor, Tensor]:
    """x `[T, D]`, W1 `[F, D]` and W2 `[D, F]`, the same on every rank."""
    generator = torch.Generator().manual_seed(0)

    def random(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=generator, dtype=torch.float64)

    return random(TOKENS, HIDDEN), random(WIDTH, HIDDEN), random(HIDDEN, WIDTH)


def _outcomes(
    comm: Comm, placements: Mapping[str, Placement], reference: Placement
) -> list[Outcome]:
    """Each placement on the ranks of `comm`, compared with `reference` on one rank."""
    numbers = _numbers()
    whole_TD = reference(Comm.solo(), *numbers)
    outcomes = []
    for name, place in placements.items():
        traced = TracedComm(comm)
        y_TD = place(traced, *(x.to(comm.device) for x in numbers)).cpu()
        outcomes.append(
            Outcome(
                name=name,
                all_reduces=traced.trace.count("all_reduce"),
                all_gathers=traced.trace.count("all_gather"),
                payload_bytes=traced.trace.total_bytes(),
                wire_bytes=traced.trace.total_wire_bytes(),
                max_abs_error=(y_TD - whole_TD).abs().max().item(),
            )
        )
    return outcomes
