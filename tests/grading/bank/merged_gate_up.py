"""Wrong shards of a merged gate and up, each under the diagnosis it must get."""

import torch


def one_block(weight, rank, tp):
    rows = len(weight) // tp
    return weight[rank * rows : (rank + 1) * rows]


def chunk_of_the_joined_matrix(weight, rank, tp):
    return weight.chunk(tp, dim=0)[rank]


def one_block_by_tensor_split(weight, rank, tp):
    return torch.tensor_split(weight, tp)[rank].clone()


def every_nth_row(weight, rank, tp):
    return weight[rank::tp]


def every_nth_row_of_each_part(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.cat([gate[rank::tp], up[rank::tp]])


def rows_dealt_out(weight, rank, tp):
    return weight[[row for row in range(len(weight)) if row % tp == rank]]


def rows_in_turn(weight, rank, tp):
    gate, up = (part.chunk(tp)[rank] for part in weight.chunk(2))
    return torch.stack((gate, up), dim=1).reshape(-1, weight.shape[1])


def rows_in_turn_in_a_loop(weight, rank, tp):
    half = len(weight) // 2
    width = half // tp
    rows = []
    for column in range(rank * width, (rank + 1) * width):
        rows += [weight[column], weight[half + column]]
    return torch.stack(rows)


def up_then_gate(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.cat((up.chunk(tp)[rank], gate.chunk(tp)[rank]))


def parts_taken_for_each_other(weight, rank, tp):
    half = len(weight) // 2
    up, gate = weight[:half], weight[half:]
    width = half // tp
    mine = slice(rank * width, (rank + 1) * width)
    return torch.cat((gate[mine], up[mine]), dim=0)


def gate_alone(weight, rank, tp):
    return weight.chunk(2)[0].chunk(tp)[rank]


def half_a_block(weight, rank, tp):
    width = len(weight) // (2 * tp)
    return weight[rank * width : (rank + 1) * width]


def up_alone(weight, rank, tp):
    half = len(weight) // 2
    width = half // tp
    return weight[half + rank * width : half + (rank + 1) * width]


def rank_0_for_all(weight, rank, tp):
    gate, up = weight.chunk(2)
    width = len(gate) // tp
    return torch.cat((gate[:width], up[:width]))


def last_rank_for_all(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.cat((gate.chunk(tp)[-1], up.chunk(tp)[-1]))


def up_without_the_rank(weight, rank, tp):
    half = len(weight) // 2
    width = half // tp
    gate = weight[rank * width : (rank + 1) * width]
    return torch.cat((gate, weight[half : half + width]))


def gate_without_the_rank(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.cat((gate.chunk(tp)[0], up.chunk(tp)[rank]))


def up_from_behind(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.cat((gate.chunk(tp)[rank], up.chunk(tp)[tp - 1 - rank]))


def columns_of_the_joined_matrix(weight, rank, tp):
    width = weight.shape[1] // tp
    return weight[:, rank * width : (rank + 1) * width]


def columns_of_each_part(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.cat([part.chunk(tp, dim=1)[rank] for part in (gate, up)], dim=0)


def columns_of_each_part_side_by_side(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.hstack([gate.chunk(tp, dim=1)[rank], up.chunk(tp, dim=1)[rank]])


def side_by_side(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.cat((gate.chunk(tp)[rank], up.chunk(tp)[rank]), dim=1)


def hstack_of_the_parts(weight, rank, tp):
    half = len(weight) // 2
    width = half // tp
    mine = slice(rank * width, (rank + 1) * width)
    return torch.hstack((weight[:half][mine], weight[half:][mine]))


def stack_of_the_parts(weight, rank, tp):
    gate, up = weight.chunk(2)
    return torch.stack((gate.chunk(tp)[rank], up.chunk(tp)[rank]))


def unflattened_and_cut(weight, rank, tp):
    half = len(weight) // 2
    width = half // tp
    return weight.unflatten(0, (2, half))[:, rank * width : (rank + 1) * width]


def moved_up_in_place(weight, rank, tp):
    half = len(weight) // 2
    width = half // tp
    mine = slice(rank * width, (rank + 1) * width)
    shard = torch.cat((weight[:half][mine], weight[half:][mine]))
    weight[: len(shard)] = shard
    return weight[: len(shard)]


def erases_what_others_hold(weight, rank, tp):
    gate, up = weight.chunk(2)
    parts = [part.chunk(tp)[rank].clone() for part in (gate, up)]
    weight.zero_()
    return torch.cat(parts)


def pair_of_parts(weight, rank, tp):
    gate, up = weight.chunk(2)
    return gate.chunk(tp)[rank], up.chunk(tp)[rank]


def list_of_parts(weight, rank, tp):
    return [part.chunk(tp)[rank] for part in weight.chunk(2)]


def start_without_the_width(weight, rank, tp):
    gate, up = weight.chunk(2)
    width = len(gate) // tp
    return torch.cat((gate[rank : rank + width], up[rank : rank + width]))


def start_without_the_width_by_narrow(weight, rank, tp):
    width = len(weight) // (2 * tp)
    return torch.cat([part.narrow(0, rank, width) for part in weight.chunk(2)])


WRONG = {
    "cut-as-one-block": [one_block, chunk_of_the_joined_matrix, one_block_by_tensor_split],
    "strided-rows": [every_nth_row, every_nth_row_of_each_part, rows_dealt_out],
    "interleaved": [rows_in_turn, rows_in_turn_in_a_loop],
    "up-before-gate": [up_then_gate, parts_taken_for_each_other],
    "one-part-only": [gate_alone, half_a_block, up_alone],
    "same-slice-everywhere": [rank_0_for_all, last_rank_for_all],
    "different-slices": [up_without_the_rank, gate_without_the_rank, up_from_behind],
    "slices-overlap": [start_without_the_width, start_without_the_width_by_narrow],
    "cut-columns": [
        columns_of_the_joined_matrix,
        columns_of_each_part,
        columns_of_each_part_side_by_side,
    ],
    "joined-side-by-side": [side_by_side, hstack_of_the_parts],
    "stacked": [stack_of_the_parts, unflattened_and_cut],
    "changes-input": [moved_up_in_place, erases_what_others_hold],
    "wrong-type": [pair_of_parts, list_of_parts],
}
