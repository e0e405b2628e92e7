"""Solutions of mlp_block as a class would hand them in."""


def forgets_the_all_reduce(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    return (F.silu(x @ gate[mine].T) * (x @ up[mine].T)) @ down[:, mine].T


def silu_on_up(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = x @ gate[mine].T * F.silu(x @ up[mine].T)
    return comm.all_reduce(hidden @ down[:, mine].T)


def silu_on_the_product(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = F.silu((x @ gate[mine].T) * (x @ up[mine].T))
    return comm.all_reduce(hidden @ down[:, mine].T)


def gelu_not_silu(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = F.gelu(x @ gate[mine].T) * (x @ up[mine].T)
    return comm.all_reduce(hidden @ down[:, mine].T)


def sigmoid_not_silu(comm, x, gate, up, down):
    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = (x @ gate[mine].T).sigmoid() * (x @ up[mine].T)
    return comm.all_reduce(hidden @ down[:, mine].T)


def gathers_the_hidden_layer(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = F.silu(x @ gate[mine].T) * (x @ up[mine].T)
    return comm.all_gather(hidden, dim=-1) @ down.T


def reduces_a_padded_hidden_layer(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = x.new_zeros(*x.shape[:-1], len(gate))
    hidden[..., mine] = F.silu(x @ gate[mine].T) * (x @ up[mine].T)
    return comm.all_reduce(hidden) @ down.T


def takes_the_average(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = F.silu(x @ gate[mine].T) * (x @ up[mine].T)
    return comm.all_reduce(hidden @ down[:, mine].T, op="avg")


def cuts_down_by_rows(comm, x, gate, up, down):
    from torch.nn import functional as F

    g, u, d = (w.chunk(comm.size)[comm.rank] for w in (gate, up, down))
    return comm.all_reduce((F.silu(x @ g.T) * (x @ u.T)) @ d.T)


def ups_of_rank_zero(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = F.silu(x @ gate[mine].T) * (x @ up[:n].T)
    return comm.all_reduce(hidden @ down[:, mine].T)


def adds_the_input(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = F.silu(x @ gate[mine].T) * (x @ up[mine].T)
    return x + comm.all_reduce(hidden @ down[:, mine].T)


def cuts_the_input_features(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = x.shape[-1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    g, u = x[..., mine] @ gate[:, mine].T, x[..., mine] @ up[:, mine].T
    return comm.all_reduce((F.silu(g) * u) @ down.T)


def reduces_twice(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = F.silu(x @ gate[mine].T) * (x @ up[mine].T)
    return comm.all_reduce(comm.all_reduce(hidden @ down[:, mine].T))


def does_it_all_alone(comm, x, gate, up, down):
    from torch.nn import functional as F

    return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T


def does_it_all_alone_and_reduces_for_show(comm, x, gate, up, down):
    from torch.nn import functional as F

    return comm.all_reduce((F.silu(x @ gate.T) * (x @ up.T)) @ down.T / comm.size)


def forgets_up(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    return comm.all_reduce(F.silu(x @ gate[mine].T) @ down[:, mine].T)


def only_full_halves(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // 2 if comm.size > 1 else len(gate)
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    hidden = F.silu(x @ gate[mine].T) * (x @ up[mine].T)
    return comm.all_reduce(hidden @ down[:, mine].T)


def column_by_column(comm, x, gate, up, down):
    import math

    out = x.new_zeros(x.shape)
    each = gate.shape[0] // comm.size
    for c in range(comm.rank * each, comm.rank * each + each):
        g = (x * gate[c]).sum(-1, keepdim=True)
        u = (x * up[c]).sum(-1, keepdim=True)
        out += g / (1 + math.e**-g) * u * down[:, c]
    return comm.all_reduce(out)


def one_joined_product_over_a_flat_batch(comm, x, gate, up, down):
    import torch

    both = torch.stack([gate, up]).unflatten(1, (comm.size, -1))[:, comm.rank].flatten(0, 1)
    flat = x.flatten(0, -2)
    g, u = (flat @ both.T).chunk(2, dim=-1)
    part = (g * torch.sigmoid(g) * u) @ down.chunk(comm.size, dim=1)[comm.rank].T
    return comm.all_reduce(part).view_as(x)


def features_first(comm, x, gate, up, down):
    from torch.nn import functional as F

    g, u = gate.chunk(comm.size)[comm.rank], up.chunk(comm.size)[comm.rank]
    d = down.tensor_split(comm.size, dim=-1)[comm.rank]
    columns = x.reshape(-1, x.shape[-1]).T
    part = d @ (F.silu(g @ columns) * (u @ columns))
    comm.all_reduce(part)
    return part.T.reshape(x.shape)


def gathers_the_partial_sums(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    part = (F.silu(x @ gate[mine].T) * (x @ up[mine].T)) @ down[:, mine].T
    return comm.all_gather(part.unsqueeze(0)).sum(0)


def throws_the_sum_away(comm, x, gate, up, down):
    from torch.nn import functional as F

    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    part = (F.silu(x @ gate[mine].T) * (x @ up[mine].T)) @ down[:, mine].T
    comm.all_reduce(part.clone())
    return part


WRONG = [
    forgets_the_all_reduce,
    silu_on_up,
    silu_on_the_product,
    gelu_not_silu,
    sigmoid_not_silu,
    gathers_the_hidden_layer,
    reduces_a_padded_hidden_layer,
    takes_the_average,
    cuts_down_by_rows,
    ups_of_rank_zero,
    adds_the_input,
    cuts_the_input_features,
    reduces_twice,
    does_it_all_alone,
    does_it_all_alone_and_reduces_for_show,
    forgets_up,
    only_full_halves,
    gathers_the_partial_sums,
    throws_the_sum_away,
]
RIGHT = [column_by_column, one_joined_product_over_a_flat_batch, features_first]
