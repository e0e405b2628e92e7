"""Solutions of merged_gate_up as a class would hand them in."""


def cuts_the_joined_matrix(weight, rank, tp):
    return weight.chunk(tp)[rank]


def up_before_gate(weight, rank, tp):
    import torch

    gate, up = weight.chunk(2)
    return torch.cat([up.chunk(tp)[rank], gate.chunk(tp)[rank]])


def joins_side_by_side(weight, rank, tp):
    import torch

    gate, up = weight.chunk(2)
    return torch.cat([gate.chunk(tp)[rank], up.chunk(tp)[rank]], dim=1)


def gate_and_up_in_turns(weight, rank, tp):
    import torch

    gate, up = weight.chunk(2)
    pair = torch.stack([gate.chunk(tp)[rank], up.chunk(tp)[rank]], dim=1)
    return pair.reshape(-1, weight.shape[1])


def a_pair_of_pieces(weight, rank, tp):
    gate, up = weight.chunk(2)
    return gate.chunk(tp)[rank], up.chunk(tp)[rank]


def stacked(weight, rank, tp):
    import torch

    gate, up = weight.chunk(2)
    return torch.stack([gate.chunk(tp)[rank], up.chunk(tp)[rank]])


def only_its_gate_rows(weight, rank, tp):
    f = weight.shape[0] // 2 // tp
    return weight[rank * f : (rank + 1) * f]


def every_tp_th_row(weight, rank, tp):
    import torch

    gate, up = weight.chunk(2)
    return torch.cat([gate[rank::tp], up[rank::tp]])


def cuts_columns_of_d(weight, rank, tp):
    d = weight.shape[1] // tp
    return weight[:, rank * d : (rank + 1) * d]


def same_rows_of_up_as_of_rank_zero(weight, rank, tp):
    import torch

    f = weight.shape[0] // 2
    n = f // tp
    return torch.cat([weight[rank * n : (rank + 1) * n], weight[f : f + n]])


def counts_ranks_from_one(weight, rank, tp):
    import torch

    f = weight.shape[0] // 2
    n = f // tp
    a, b = (rank - 1) * n, rank * n
    return torch.cat([weight[a:b], weight[f + a : f + b]])


def the_whole_gate_and_its_up(weight, rank, tp):
    import torch

    gate, up = weight.chunk(2)
    return torch.cat([gate, up.chunk(tp)[rank]])


def only_right_for_two_ranks(weight, rank, tp):
    import torch

    gate, up = weight.chunk(2)
    return torch.cat([gate.chunk(2)[rank], up.chunk(2)[rank]])


def in_numpy(weight, rank, tp):
    import numpy as np

    gate, up = np.split(weight.numpy(), 2)
    return np.concatenate([np.split(gate, tp)[rank], np.split(up, tp)[rank]])


def by_shape_alone(weight, rank, tp):
    return weight.view(2, tp, -1, weight.shape[1])[:, rank].reshape(-1, weight.shape[1])


def by_row_numbers(weight, rank, tp):
    f = len(weight) // 2
    n = f // tp
    rows = [*range(rank * n, rank * n + n), *range(f + rank * n, f + rank * n + n)]
    return weight[rows]


def what_is_left_of_the_others(weight, rank, tp):
    import torch

    f = len(weight) // 2
    column = torch.arange(2 * f) % f
    keep = (column >= rank * f // tp) & (column < (rank + 1) * f // tp)
    return weight.T[:, keep].T


WRONG = [
    cuts_the_joined_matrix,
    up_before_gate,
    joins_side_by_side,
    gate_and_up_in_turns,
    a_pair_of_pieces,
    stacked,
    only_its_gate_rows,
    every_tp_th_row,
    cuts_columns_of_d,
    same_rows_of_up_as_of_rank_zero,
    counts_ranks_from_one,
    the_whole_gate_and_its_up,
    only_right_for_two_ranks,
    in_numpy,
]
RIGHT = [by_shape_alone, by_row_numbers, what_is_left_of_the_others]
