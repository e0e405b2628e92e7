"""Wrong tensor parallel MLPs, each under the diagnosis it must get."""

import torch
from torch.nn import functional as F


def cut(comm, gate, up, down):
    """This rank's rows of gate and up, and its columns of down."""
    r, n = comm.rank, comm.size
    return gate.chunk(n)[r], up.chunk(n)[r], down.chunk(n, dim=1)[r]


def partial_sum_alone(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return F.linear(F.silu(F.linear(x, g)) * F.linear(x, u), d)


def reduced_a_copy(comm, x, gate, up, down):
    width = len(gate) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = (F.silu(x @ gate[mine].T) * (x @ up[mine].T)) @ down[:, mine].T
    comm.all_reduce(y.clone())
    return y


def averaged(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce(F.linear(F.silu(F.linear(x, g)) * F.linear(x, u), d), op="avg")


def divided_by_the_ranks(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce((F.silu(x @ g.T) * (x @ u.T)) @ d.T / comm.size)


def first_slices(comm, x, gate, up, down):
    width = len(gate) // comm.size
    hidden = F.silu(x @ gate[:width].T) * (x @ up[:width].T)
    return comm.all_reduce(hidden @ down[:, :width].T)


def first_slice_of_down(comm, x, gate, up, down):
    g, u, _ = cut(comm, gate, up, down)
    hidden = F.silu(F.linear(x, g)) * F.linear(x, u)
    return comm.all_reduce(F.linear(hidden, down[:, : len(g)]))


def first_slices_of_gate_and_up(comm, x, gate, up, down):
    _, _, d = cut(comm, gate, up, down)
    width = d.shape[1]
    return comm.all_reduce((F.silu(x @ gate[:width].T) * (x @ up[:width].T)) @ d.T)


def gate_and_up_strided(comm, x, gate, up, down):
    r, n = comm.rank, comm.size
    hidden = F.silu(x @ gate[r::n].T) * (x @ up[r::n].T)
    return comm.all_reduce(hidden @ down.chunk(n, dim=1)[r].T)


def down_strided(comm, x, gate, up, down):
    g, u, _ = cut(comm, gate, up, down)
    hidden = F.silu(F.linear(x, g)) * F.linear(x, u)
    return comm.all_reduce(F.linear(hidden, down[:, comm.rank :: comm.size]))


def merged_in_one_block(comm, x, gate, up, down):
    merged = torch.cat((gate, up)).chunk(comm.size)[comm.rank]
    g, u = (x @ merged.T).chunk(2, dim=-1)
    return comm.all_reduce((F.silu(g) * u) @ down.chunk(comm.size, dim=1)[comm.rank].T)


def merged_in_one_block_by_slices(comm, x, gate, up, down):
    merged = torch.vstack((gate, up))
    rows = len(merged) // comm.size
    out = F.linear(x, merged[comm.rank * rows : (comm.rank + 1) * rows])
    width = rows // 2
    hidden = F.silu(out[..., :width]) * out[..., width:]
    return comm.all_reduce(F.linear(hidden, down[:, comm.rank * width : (comm.rank + 1) * width]))


def whole_block_summed(comm, x, gate, up, down):
    return comm.all_reduce(F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down))


def whole_block_by_matmul_summed(comm, x, gate, up, down):
    y = (F.silu(x @ gate.T) * (x @ up.T)) @ down.T
    comm.all_reduce(y)
    return y


def not_activated(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce(F.linear(F.linear(x, g) * F.linear(x, u), d))


def activation_dropped(comm, x, gate, up, down):
    width = len(gate) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    g = x @ gate[mine].T
    F.silu(g)
    return comm.all_reduce((g * (x @ up[mine].T)) @ down[:, mine].T)


def up_activated(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce(F.linear(F.linear(x, g) * F.silu(F.linear(x, u)), d))


def gate_and_up_taken_for_each_other(comm, x, gate, up, down):
    width = len(gate) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    u, g = x @ gate[mine].T, x @ up[mine].T
    return comm.all_reduce((F.silu(g) * u) @ down[:, mine].T)


def product_activated(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce(F.linear(F.silu(F.linear(x, g) * F.linear(x, u)), d))


def product_activated_by_hand(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    h = (x @ g.T) * (x @ u.T)
    return comm.all_reduce((h * torch.sigmoid(h)) @ d.T)


def sigmoid_alone(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce(F.linear(torch.sigmoid(F.linear(x, g)) * F.linear(x, u), d))


def relu(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce(((x @ g.T).clamp(min=0) * (x @ u.T)) @ d.T)


def gelu(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce(F.linear(F.gelu(F.linear(x, g)) * F.linear(x, u), d))


def inputs_cut_activated_on_each_rank(comm, x, gate, up, down):
    r, n = comm.rank, comm.size
    x_part = x.chunk(n, dim=-1)[r]
    g, u = (x_part @ w.chunk(n, dim=1)[r].T for w in (gate, up))
    return comm.all_reduce((F.silu(g) * u) @ down.T)


def activated_again_before_the_sum(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    y = F.linear(F.silu(F.linear(x, g)) * F.linear(x, u), d)
    return comm.all_reduce(F.silu(y)) if comm.size > 1 else y


def activated_after_the_sum(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return F.silu(comm.all_reduce(F.linear(F.linear(x, g) * F.linear(x, u), d)))


def activated_twice(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    y = comm.all_reduce((F.silu(x @ g.T) * (x @ u.T)) @ d.T)
    return F.silu(y)


def hidden_gathered(comm, x, gate, up, down):
    g, u, _ = cut(comm, gate, up, down)
    hidden = comm.all_gather(F.silu(F.linear(x, g)) * F.linear(x, u), dim=-1)
    return F.linear(hidden, down)


def hidden_gathered_then_cut_and_summed(comm, x, gate, up, down):
    width = len(gate) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    hidden = comm.all_gather(F.silu(x @ gate[mine].T) * (x @ up[mine].T), dim=-1)
    return comm.all_reduce(hidden[..., mine] @ down[:, mine].T)


def all_column_parallel(comm, x, gate, up, down):
    g, u, _ = cut(comm, gate, up, down)
    gates = comm.all_gather(F.linear(x, g), dim=-1)
    ups = comm.all_gather(F.linear(x, u), dim=-1)
    rows = torch.arange(len(down)).chunk(comm.size)[comm.rank]
    return comm.all_gather(F.linear(F.silu(gates) * ups, down[rows]), dim=-1)


def inputs_cut_and_each_product_summed(comm, x, gate, up, down):
    r, n = comm.rank, comm.size
    if n == 1:
        return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)
    x_part = x.chunk(n, dim=-1)[r]
    g = comm.all_reduce(x_part @ gate.chunk(n, dim=1)[r].T)
    u = comm.all_reduce(x_part @ up.chunk(n, dim=1)[r].T)
    hidden = (F.silu(g) * u).chunk(n, dim=-1)[r]
    return comm.all_reduce(hidden @ down.chunk(n, dim=1)[r].T)


def finished_columns_summed(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    gates, ups = comm.all_reduce(F.linear(x, g)), comm.all_reduce(F.linear(x, u))
    return comm.all_reduce(F.linear(F.silu(gates) * ups, d))


def hidden_summed_too(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    hidden = comm.all_reduce(F.silu(x @ g.T) * (x @ u.T))
    return comm.all_reduce(hidden @ d.T)


def hidden_put_together_by_a_sum(comm, x, gate, up, down):
    width = len(gate) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    hidden = x.new_zeros(*x.shape[:-1], len(gate))
    hidden[..., mine] = F.silu(x @ gate[mine].T) * (x @ up[mine].T)
    return F.linear(comm.all_reduce(hidden), down)


def masked_hidden_summed(comm, x, gate, up, down):
    hidden = F.silu(F.linear(x, gate)) * F.linear(x, up)
    owner = torch.arange(len(gate)) // (len(gate) // comm.size)
    return comm.all_reduce(hidden * (owner == comm.rank)) @ down.T


def whole_block(comm, x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def all_parts_here(comm, x, gate, up, down):
    parts = zip(
        gate.chunk(comm.size), up.chunk(comm.size), down.chunk(comm.size, dim=1), strict=True
    )
    return sum((F.silu(x @ g.T) * (x @ u.T)) @ d.T for g, u, d in parts)


def masks_the_callers_down(comm, x, gate, up, down):
    owner = torch.arange(down.shape[1]) // (down.shape[1] // comm.size)
    down[:, owner != comm.rank] = 0
    return comm.all_reduce(F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down))


def result_written_into_x(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    x.copy_(F.linear(F.silu(F.linear(x, g)) * F.linear(x, u), d))
    return comm.all_reduce(x)


def transposes_in_place(comm, x, gate, up, down):
    width = len(gate) // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    down.t_()
    return comm.all_reduce((F.silu(x @ gate[mine].T) * (x @ up[mine].T)) @ down[mine])


def gate_plus_up(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    return comm.all_reduce(F.linear(F.silu(F.linear(x, g)) + F.linear(x, u), d))


def up_added_to_the_gate(comm, x, gate, up, down):
    g, u, d = cut(comm, gate, up, down)
    hidden = F.silu(x @ g.T)
    hidden += x @ u.T
    return comm.all_reduce(hidden @ d.T)


def every_nth_column(comm, x, gate, up, down):
    r, n = comm.rank, comm.size
    hidden = F.silu(x @ gate[r::n].T) * (x @ up[r::n].T)
    return comm.all_reduce(hidden @ down[:, r::n].T)


def columns_dealt_out(comm, x, gate, up, down):
    mine = [c for c in range(len(gate)) if c % comm.size == comm.rank]
    hidden = F.silu(F.linear(x, gate[mine])) * F.linear(x, up[mine])
    return comm.all_reduce(F.linear(hidden, down[:, mine]))


def whole_block_averaged(comm, x, gate, up, down):
    y = F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)
    return comm.all_reduce(y, op="avg")


def whole_block_divided_by_the_ranks(comm, x, gate, up, down):
    return comm.all_reduce((F.silu(x @ gate.T) * (x @ up.T)) @ down.T / comm.size)


def sums_the_sum_again(comm, x, gate, up, down):
    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    g = x @ gate[mine].T
    part = (g * g.sigmoid() * (x @ up[mine].T)) @ down[:, mine].T
    return comm.all_reduce(comm.all_reduce(part))


def gathers_partial_sums_and_adds_them(comm, x, gate, up, down):
    n = len(gate) // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    g = x @ gate[mine].T
    part = (g * g.sigmoid() * (x @ up[mine].T)) @ down[:, mine].T
    return comm.all_gather(part.unsqueeze(0)).sum(dim=0)


WRONG = {
    "no-reduce": [partial_sum_alone, reduced_a_copy],
    "mean-of-partial-sums": [averaged, divided_by_the_ranks],
    "same-slice-everywhere": [first_slices, first_slice_of_down, first_slices_of_gate_and_up],
    "columns-do-not-match": [gate_and_up_strided, down_strided],
    "cut-as-one-block": [merged_in_one_block, merged_in_one_block_by_slices],
    "summed-whole-products": [whole_block_summed, whole_block_by_matmul_summed],
    "strided-columns": [every_nth_column, columns_dealt_out],
    "averaged-whole-products": [whole_block_averaged, whole_block_divided_by_the_ranks],
    "gate-and-up-added": [gate_plus_up, up_added_to_the_gate],
    "no-activation": [not_activated, activation_dropped],
    "activation-on-up": [up_activated, gate_and_up_taken_for_each_other],
    "activation-on-product": [product_activated, product_activated_by_hand],
    "other-activation": [sigmoid_alone, relu, gelu],
    "activation-on-partial-sums": [
        inputs_cut_activated_on_each_rank,
        activated_again_before_the_sum,
    ],
    "activation-at-the-end": [activated_after_the_sum, activated_twice],
    "gather-in-the-middle": [
        hidden_gathered,
        hidden_gathered_then_cut_and_summed,
        all_column_parallel,
    ],
    "reduce-after-each-linear": [
        inputs_cut_and_each_product_summed,
        finished_columns_summed,
        hidden_summed_too,
    ],
    "reduce-in-the-middle": [hidden_put_together_by_a_sum, masked_hidden_summed],
    "computes-everything": [whole_block, all_parts_here],
    "changes-input": [masks_the_callers_down, result_written_into_x, transposes_in_place],
    "summed-again": [sums_the_sum_again],
    "gathered-partial-sums": [gathers_partial_sums_and_adds_them],
}
