"""Solutions of row_parallel as a class would hand them in."""


def forgets_the_all_reduce(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    return x[..., mine] @ weight[:, mine].T + bias


def adds_the_bias_on_every_rank(comm, x, weight, bias):
    from torch.nn import functional as F

    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    return comm.all_reduce(F.linear(x[..., mine], weight[:, mine], bias))


def forgets_the_bias(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    return comm.all_reduce(x[..., mine] @ weight[:, mine].T)


def takes_the_average(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    return comm.all_reduce(x[..., mine] @ weight[:, mine].T + bias, op="avg")


def adds_the_bias_on_rank_zero_after_the_sum(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    out = comm.all_reduce(x[..., mine] @ weight[:, mine].T)
    if comm.rank == 0:
        out = out + bias
    return out


def takes_the_first_block_everywhere(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    return comm.all_reduce(x[..., :n] @ weight[:, :n].T) + bias


def cuts_the_weight_but_not_x(comm, x, weight, bias):
    w = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x @ w.T) + bias


def cuts_x_at_dim_zero(comm, x, weight, bias):
    w = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x.chunk(comm.size)[comm.rank] @ w.T) + bias


def cuts_x_at_dim_one(comm, x, weight, bias):
    w = weight.chunk(comm.size, dim=1)[comm.rank]
    return comm.all_reduce(x.chunk(comm.size, dim=1)[comm.rank] @ w.T) + bias


def gathers_the_parts_and_adds(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    parts = comm.all_gather((x[..., mine] @ weight[:, mine].T).unsqueeze(0))
    return parts.sum(0) + bias


def uses_the_whole_weight_and_averages(comm, x, weight, bias):
    return comm.all_reduce(x @ weight.T) / comm.size + bias


def strides_over_the_columns(comm, x, weight, bias):
    mine = slice(comm.rank, None, comm.size)
    return comm.all_reduce(x[..., mine] @ weight[:, mine].T) + bias


def throws_the_sum_away(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    part = x[..., mine] @ weight[:, mine].T
    comm.all_reduce(part.clone())
    return part + bias


def halves_the_bias_whatever_the_size(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    share = bias if comm.size == 1 else bias / 2
    return comm.all_reduce(x[..., mine] @ weight[:, mine].T + share)


def reduces_the_bias_too(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    out = comm.all_reduce(x[..., mine] @ weight[:, mine].T)
    return out + comm.all_reduce(bias)


def returns_on_rank_zero_only(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    out = comm.all_reduce(x[..., mine] @ weight[:, mine].T)
    if comm.rank == 0:
        return out + bias


def only_rank_zero_reduces(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    out = x[..., mine] @ weight[:, mine].T
    if comm.rank == 0:
        out = comm.all_reduce(out)
    return out + bias


def bias_on_the_last_rank(comm, x, weight, bias):
    import torch

    mine = torch.arange(weight.shape[1]).tensor_split(comm.size)[comm.rank]
    out = torch.einsum("...i,oi->...o", x[..., mine], weight[:, mine]).contiguous()
    return comm.all_reduce(out + bias if comm.rank == comm.size - 1 else out)


def a_share_of_the_bias_on_each(comm, x, weight, bias):
    w = weight.unflatten(1, (comm.size, -1))[:, comm.rank]
    part = x.unflatten(-1, (comm.size, -1))[..., comm.rank, :]
    return comm.all_reduce(part @ w.mT + bias / comm.size)


def zeros_outside_its_block(comm, x, weight, bias):
    import torch

    owner = torch.arange(weight.shape[1]) * comm.size // weight.shape[1]
    mine = (owner == comm.rank).expand_as(weight)
    own = torch.where(mine, weight, torch.zeros_like(weight))
    out = x @ own.T
    comm.all_reduce(out)
    return out.add_(bias)


def bias_as_one_more_column(comm, x, weight, bias):
    import torch

    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    one = torch.full((*x.shape[:-1], 1), float(comm.rank == 0), dtype=x.dtype)
    part, w = torch.cat([x[..., mine], one], -1), torch.cat([weight[:, mine], bias[:, None]], 1)
    flat = comm.all_reduce(part.flatten(0, -2) @ w.T)
    return flat.view(*x.shape[:-1], -1)


def reduces_twice(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    part = comm.all_reduce(x[..., mine] @ weight[:, mine].T)
    return comm.all_reduce(part) + bias


def with_a_layer_that_tracks_gradients(comm, x, weight, bias):
    import torch

    layer = torch.nn.Linear(weight.shape[1] // comm.size, len(weight), dtype=weight.dtype)
    layer.weight = torch.nn.Parameter(weight.chunk(comm.size, dim=1)[comm.rank])
    layer.bias = torch.nn.Parameter(bias if comm.rank == 0 else torch.zeros_like(bias))
    return comm.all_reduce(layer(x.chunk(comm.size, dim=-1)[comm.rank]))


WRONG = [
    forgets_the_all_reduce,
    adds_the_bias_on_every_rank,
    forgets_the_bias,
    takes_the_average,
    adds_the_bias_on_rank_zero_after_the_sum,
    takes_the_first_block_everywhere,
    cuts_the_weight_but_not_x,
    cuts_x_at_dim_zero,
    cuts_x_at_dim_one,
    gathers_the_parts_and_adds,
    uses_the_whole_weight_and_averages,
    strides_over_the_columns,
    throws_the_sum_away,
    halves_the_bias_whatever_the_size,
    reduces_the_bias_too,
    returns_on_rank_zero_only,
    only_rank_zero_reduces,
    reduces_twice,
]
RIGHT = [
    bias_on_the_last_rank,
    a_share_of_the_bias_on_each,
    zeros_outside_its_block,
    bias_as_one_more_column,
    with_a_layer_that_tracks_gradients,
]
