"""Wrong row parallel layers, each under the diagnosis it must get."""

import torch
from torch.nn import functional as F


def partial_sum_alone(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return F.linear(x_part, w_part, bias)


def partial_sum_with_bias_on_rank_0(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = x[..., mine] @ weight[:, mine].T
    return y + bias if comm.rank == 0 else y


def reduced_a_copy_and_dropped_it(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = x[..., mine] @ weight[:, mine].T
    comm.all_reduce(y.clone())
    return y + bias


def bias_inside_the_product(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(F.linear(x_part, w_part, bias))


def bias_before_the_sum(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = bias + x[..., mine] @ weight[:, mine].T
    comm.all_reduce(y)
    return y


def no_bias(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x_part @ w_part.T)


def bias_added_to_what_was_not_kept(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = comm.all_reduce(x[..., mine] @ weight[:, mine].T)
    y.add(bias)
    return y


def bias_after_the_sum_on_rank_0(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    y = comm.all_reduce(x_part @ w_part.T)
    if comm.rank == 0:
        y = y + bias
    return y


def bias_after_the_sum_on_the_last_rank(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = comm.all_reduce(F.linear(x[..., mine], weight[:, mine]))
    return y + bias * (comm.rank == comm.size - 1)


def averaged(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x_part @ w_part.T, op="avg") + bias


def divided_by_the_ranks(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = x[..., mine] @ weight[:, mine].T + bias * (comm.rank == 0)
    return comm.all_reduce(y) / comm.size


def bias_on_all_and_averaged(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(F.linear(x_part, w_part, bias)) / comm.size


def partial_sums_side_by_side(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_gather(F.linear(x_part, w_part, bias), dim=-1)


def partial_sums_below_each_other(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    return comm.all_gather(x[..., mine] @ weight[:, mine].T) + bias


def partial_sums_side_by_side_bias_on_rank_0(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = x[..., mine] @ weight[:, mine].T
    if comm.rank == 0:
        y += bias
    return comm.all_gather(y, dim=-1)


def first_columns_of_both(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    return comm.all_reduce(x[..., :width] @ weight[:, :width].T) + bias


def first_columns_of_the_weight(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    x_part = x[..., comm.rank * width : (comm.rank + 1) * width]
    return comm.all_reduce(F.linear(x_part, weight[:, :width])) + bias


def first_columns_of_x(comm, x, weight, bias):
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x[..., : w_part.shape[1]] @ w_part.T) + bias


def strided_x(comm, x, weight, bias):
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x[..., comm.rank :: comm.size] @ w_part.T) + bias


def strided_weight(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    x_part = x[..., comm.rank * width : (comm.rank + 1) * width]
    w_part = weight[:, comm.rank :: comm.size]
    return comm.all_reduce(F.linear(x_part, w_part)) + bias


def x_reshaped_into_parts(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    x_part = x.reshape(*x.shape[:-1], width, comm.size)[..., comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x_part @ w_part.T) + bias


def whole_product_summed(comm, x, weight, bias):
    return comm.all_reduce(x @ weight.T) + bias


def whole_layer_summed(comm, x, weight, bias):
    return comm.all_reduce(F.linear(x, weight, bias))


def cut_by_outputs_and_summed(comm, x, weight, bias):
    w_part, b_part = weight.chunk(comm.size)[comm.rank], bias.chunk(comm.size)[comm.rank]
    return comm.all_reduce(F.linear(x, w_part, b_part))


def wrong_dim_of_the_weight(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = comm.all_reduce(x @ weight[mine].T)
    return y if comm.size > 1 else y + bias


def column_parallel_instead(comm, x, weight, bias):
    w_part, b_part = weight.chunk(comm.size)[comm.rank], bias.chunk(comm.size)[comm.rank]
    return comm.all_gather(F.linear(x, w_part, b_part), dim=-1)


def columns_gathered_then_bias(comm, x, weight, bias):
    width = len(weight) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    return comm.all_gather(x @ weight[mine].T, dim=-1) + bias


def whole_layer(comm, x, weight, bias):
    return F.linear(x, weight, bias)


def all_partial_sums_here(comm, x, weight, bias):
    parts = zip(x.chunk(comm.size, dim=-1), weight.chunk(comm.size, dim=1), strict=True)
    return sum(x_part @ w_part.T for x_part, w_part in parts) + bias


def divides_the_callers_bias(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    bias /= comm.size
    return comm.all_reduce(F.linear(x_part, w_part, bias))


def erases_the_callers_bias(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    if comm.rank > 0:
        bias.zero_()
    return comm.all_reduce(F.linear(x_part, w_part, bias))


def masks_the_callers_x(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    x[..., : comm.rank * width] = 0
    x[..., (comm.rank + 1) * width :] = 0
    return comm.all_reduce(x @ weight.T) + bias


def masks_the_callers_weight(comm, x, weight, bias):
    keep = torch.arange(weight.shape[1]) // (weight.shape[1] // comm.size) == comm.rank
    weight[:, ~keep] = 0
    return comm.all_reduce(F.linear(x, weight)) + bias


def reduced_twice(comm, x, weight, bias):
    x_part = x.chunk(comm.size, dim=-1)[comm.rank]
    w_part = weight.chunk(comm.size, dim=1)[comm.rank]
    share = comm.all_reduce(bias / comm.size)
    return comm.all_reduce(x_part @ w_part.T) + share


def every_nth_feature(comm, x, weight, bias):
    r, n = comm.rank, comm.size
    return comm.all_reduce(F.linear(x[..., r::n], weight[:, r::n])) + bias


def features_dealt_out(comm, x, weight, bias):
    mine = [i for i in range(weight.shape[1]) if i % comm.size == comm.rank]
    return comm.all_reduce(x[..., mine] @ weight[:, mine].T) + bias


def whole_layer_averaged(comm, x, weight, bias):
    return comm.all_reduce(F.linear(x, weight, bias), op="avg")


def whole_layer_divided_by_the_ranks(comm, x, weight, bias):
    return comm.all_reduce(x @ weight.T / comm.size) + bias


def sums_the_sum_again(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    part = comm.all_reduce(x[..., mine] @ weight[:, mine].T)
    return comm.all_reduce(part) + bias


def sums_the_sum_and_the_bias_again(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    out = comm.all_reduce(x[..., mine] @ weight[:, mine].T) + bias
    return comm.all_reduce(out)


def gathers_partial_sums_and_adds_them(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    part = x[..., mine] @ weight[:, mine].T
    return comm.all_gather(part.unsqueeze(0)).sum(dim=0) + bias


WRONG = {
    "no-reduce": [
        partial_sum_alone,
        partial_sum_with_bias_on_rank_0,
        reduced_a_copy_and_dropped_it,
    ],
    "bias-on-every-rank": [bias_inside_the_product, bias_before_the_sum],
    "bias-missing": [no_bias, bias_added_to_what_was_not_kept],
    "bias-on-one-rank": [bias_after_the_sum_on_rank_0, bias_after_the_sum_on_the_last_rank],
    "mean-of-partial-sums": [averaged, divided_by_the_ranks, bias_on_all_and_averaged],
    "gathered-partials": [
        partial_sums_side_by_side,
        partial_sums_below_each_other,
        partial_sums_side_by_side_bias_on_rank_0,
    ],
    "same-slice-everywhere": [
        first_columns_of_both,
        first_columns_of_the_weight,
        first_columns_of_x,
    ],
    "columns-do-not-match": [strided_x, strided_weight, x_reshaped_into_parts],
    "summed-whole-products": [whole_product_summed, whole_layer_summed],
    "strided-columns": [every_nth_feature, features_dealt_out],
    "averaged-whole-products": [whole_layer_averaged, whole_layer_divided_by_the_ranks],
    "cut-outputs": [cut_by_outputs_and_summed, wrong_dim_of_the_weight],
    "gathered-columns": [column_parallel_instead, columns_gathered_then_bias],
    "computes-everything": [whole_layer, all_partial_sums_here],
    "changes-input": [
        divides_the_callers_bias,
        erases_the_callers_bias,
        masks_the_callers_x,
        masks_the_callers_weight,
    ],
    "extra-collective": [reduced_twice],
    "summed-again": [sums_the_sum_again, sums_the_sum_and_the_bias_again],
    "gathered-partial-sums": [gathers_partial_sums_and_adds_them],
}
