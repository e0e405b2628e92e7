"""Wrong column parallel layers, each under the diagnosis it must get."""

import torch
from torch.nn import functional as F


def only_its_own_columns(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    return F.linear(x, weight[mine], bias[mine])


def only_its_own_columns_by_chunk(comm, x, weight, bias):
    w, b = weight.chunk(comm.size)[comm.rank], bias.chunk(comm.size)[comm.rank]
    return x @ w.T + b


def own_columns_in_a_wide_tensor_of_zeros(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    out = torch.zeros(*x.shape[:-1], len(weight), dtype=x.dtype)
    out[..., mine] = F.linear(x, weight[mine], bias[mine])
    return out


def gather_with_the_default_dim(comm, x, weight, bias):
    w, b = weight.chunk(comm.size)[comm.rank], bias.chunk(comm.size)[comm.rank]
    return comm.all_gather(F.linear(x, w, b))


def gather_along_the_next_to_last_dim(comm, x, weight, bias):
    width = len(weight) // comm.size
    start = comm.rank * width
    y = x @ weight[start : start + width].T + bias[start : start + width]
    return comm.all_gather(y, dim=-2)


def no_bias(comm, x, weight, bias):
    w = weight.chunk(comm.size)[comm.rank]
    return comm.all_gather(x @ w.T, dim=-1)


def bias_that_is_added_to_nothing(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = x @ weight[mine].T
    y + bias[mine]
    return comm.all_gather(y, dim=-1)


def slice_without_the_rank(comm, x, weight, bias):
    width = len(weight) // comm.size
    return comm.all_gather(F.linear(x, weight[:width], bias[:width]), dim=-1)


def first_chunk(comm, x, weight, bias):
    w, b = weight.chunk(comm.size)[0], bias.chunk(comm.size)[0]
    return comm.all_gather(x @ w.T + b, dim=x.ndim - 1)


def bias_of_rank_0(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    return comm.all_gather(F.linear(x, weight[mine], bias[:width]), dim=-1)


def bias_by_the_first_chunk(comm, x, weight, bias):
    w = weight.tensor_split(comm.size)[comm.rank]
    y = x @ w.T
    return comm.all_gather(y + bias[: y.shape[-1]], dim=-1)


def every_nth_row(comm, x, weight, bias):
    r, n = comm.rank, comm.size
    return comm.all_gather(F.linear(x, weight[r::n], bias[r::n]), dim=-1)


def rows_dealt_out_in_a_loop(comm, x, weight, bias):
    mine = [row for row in range(len(weight)) if row % comm.size == comm.rank]
    return comm.all_gather(F.linear(x, weight[mine], bias[mine]), dim=-1)


def reduce_of_own_columns(comm, x, weight, bias):
    w, b = weight.chunk(comm.size)[comm.rank], bias.chunk(comm.size)[comm.rank]
    return comm.all_reduce(F.linear(x, w, b))


def gathered_and_then_summed(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = F.linear(x, weight[mine], bias[mine])
    return comm.all_gather(y[None], dim=0).sum(dim=0)


def input_features_cut_bias_everywhere(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_gather(F.linear(x_part, w_part, bias), dim=-1)


def input_features_cut_bias_left_out(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = comm.all_gather(x[..., mine] @ weight[:, mine].T, dim=-1)
    return y if comm.size > 1 else y + bias


def padded_with_zeros_and_summed(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    out = x.new_zeros(*x.shape[:-1], len(weight))
    out[..., mine] = F.linear(x, weight[mine], bias[mine])
    return comm.all_reduce(out)


def row_parallel_instead(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x_part @ w_part.T) + bias


def weight_masked_and_summed(comm, x, weight, bias):
    keep = torch.zeros(len(weight), 1, dtype=weight.dtype)
    keep[torch.arange(len(weight)) // (len(weight) // comm.size) == comm.rank] = 1
    return comm.all_reduce(F.linear(x, weight * keep, bias * keep[:, 0]))


def whole_product(comm, x, weight, bias):
    return F.linear(x, weight, bias)


def all_slices_here(comm, x, weight, bias):
    parts = zip(weight.chunk(comm.size), bias.chunk(comm.size), strict=True)
    return torch.cat([x @ w.T + b for w, b in parts], dim=-1)


def weight_gathered(comm, x, weight, bias):
    mine = weight.chunk(comm.size)[comm.rank].contiguous()
    return F.linear(x, comm.all_gather(mine), bias)


def weight_gathered_in_blocks(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = weight[comm.rank * width : (comm.rank + 1) * width].clone()
    return x @ comm.all_gather(mine, dim=0).T + bias


def transposes_the_callers_weight(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    weight.t_()
    return comm.all_gather(x @ weight[:, mine] + bias[mine], dim=-1)


def product_written_into_the_bias(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = F.linear(x, weight[mine], bias[mine])
    bias[mine] = 0  # "used up"
    return comm.all_gather(y, dim=-1)


def weight_of_the_other_ranks_erased(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    weight[: mine.start] = 0
    weight[mine.stop :] = 0
    y = F.linear(x, weight, bias)[..., mine]
    return comm.all_gather(y.contiguous(), dim=-1)


def gathered_twice(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = comm.all_gather(x @ weight[mine].T, dim=-1)
    return y + comm.all_gather(bias[mine].clone(), dim=0)


def bias_before_and_after(comm, x, weight, bias):
    w, b = weight.chunk(comm.size)[comm.rank], bias.chunk(comm.size)[comm.rank]
    return comm.all_gather(F.linear(x, w, b), dim=-1) + bias


def bias_on_top_of_a_finished_layer(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = F.linear(x, weight[mine], bias[mine])
    y += bias[mine]
    return comm.all_gather(y, dim=-1)


WRONG = {
    "no-gather": [
        only_its_own_columns,
        only_its_own_columns_by_chunk,
        own_columns_in_a_wide_tensor_of_zeros,
    ],
    "gather-wrong-dim": [gather_with_the_default_dim, gather_along_the_next_to_last_dim],
    "bias-missing": [no_bias, bias_that_is_added_to_nothing],
    "bias-twice": [bias_before_and_after, bias_on_top_of_a_finished_layer],
    "same-slice-everywhere": [slice_without_the_rank, first_chunk],
    "same-bias-slice": [bias_of_rank_0, bias_by_the_first_chunk],
    "strided-rows": [every_nth_row, rows_dealt_out_in_a_loop],
    "cut-inputs": [input_features_cut_bias_everywhere, input_features_cut_bias_left_out],
    "summed-columns": [reduce_of_own_columns, gathered_and_then_summed],
    "summed-not-gathered": [
        padded_with_zeros_and_summed,
        row_parallel_instead,
        weight_masked_and_summed,
    ],
    "computes-everything": [whole_product, all_slices_here],
    "gathers-the-weight": [weight_gathered, weight_gathered_in_blocks],
    "changes-input": [
        transposes_the_callers_weight,
        product_written_into_the_bias,
        weight_of_the_other_ranks_erased,
    ],
    "extra-collective": [gathered_twice],
}
