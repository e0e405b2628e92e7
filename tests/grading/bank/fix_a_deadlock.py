"""Wrong solutions of `fix_a_deadlock`, by the diagnosis that each must get."""

import time

import torch
import torch.distributed as dist


def as_it_was(comm, x):
    right, left = _sides(comm)
    above, below = torch.empty_like(x[0]), torch.empty_like(x[0])
    comm.send(x[-1], right)
    comm.recv(above, left)
    comm.send(x[0], left)
    comm.recv(below, right)
    return torch.cat((above[None], x, below[None]))


def sleeps_first(comm, x):
    time.sleep(0.05 * comm.rank)
    return as_it_was(comm, x)


def receives_first(comm, x):
    right, left = _sides(comm)
    above = comm.recv(torch.empty_like(x[0]), left)
    comm.send(x[-1], right)
    below = comm.recv(torch.empty_like(x[0]), right)
    comm.send(x[0], left)
    return torch.vstack((above, x, below))


def both_sends_first(comm, x):
    right, left = _sides(comm)
    comm.send(x[-1], right)
    comm.send(x[0], left)
    above = comm.recv(torch.empty_like(x[0]), left)
    below = comm.recv(torch.empty_like(x[0]), right)
    return torch.vstack((above, x, below))


def even_ranks_send_both_first(comm, x):
    if comm.size == 1:
        return torch.vstack((x[-1], x, x[0]))
    right, left = _sides(comm)
    above, below = torch.empty_like(x[0]), torch.empty_like(x[0])
    if comm.rank % 2 == 0:
        comm.send(x[-1], right)
        comm.send(x[0], left)
        comm.recv(above, left)
        comm.recv(below, right)
    else:
        comm.recv(above, left)
        comm.recv(below, right)
        comm.send(x[-1], right)
        comm.send(x[0], left)
    return torch.vstack((above, x, below))


def odd_ranks_wait_for_both(comm, x):
    if comm.size == 1:
        return torch.cat((x[-1:], x, x[:1]))
    right, left = _sides(comm)
    got = {}

    def give():
        comm.send(x[0], left)
        comm.send(x[-1], right)

    def take():
        got["below"] = comm.recv(torch.empty_like(x[0]), right)
        got["above"] = comm.recv(torch.empty_like(x[0]), left)

    for act in (take, give) if comm.rank % 2 else (give, take):
        act()
    return torch.vstack((got["above"], x, got["below"]))


def no_messages(comm, x):
    return x.clone()


def frame_of_zeros(comm, x):
    above, below = torch.zeros_like(x[0]), torch.zeros_like(x[0])
    return torch.cat((above[None], x, below[None]))


def ignores_what_comes(comm, x):
    _right(comm, x)
    above, below = torch.zeros_like(x[0]), torch.zeros_like(x[0])
    return torch.vstack((above, x, below))


def wraps_its_own(comm, x):
    return torch.cat((x[-1:], x, x[:1]))


def only_downwards(comm, x):
    if comm.size == 1:
        return torch.vstack((x[-1], x, x[0]))
    right, left = _sides(comm)
    above = comm.send_recv(x[-1], right, torch.empty_like(x[0]), left)
    return torch.cat((above[None], x))


def only_upwards(comm, x):
    right, left = _sides(comm)
    below = comm.send_recv(x[0], left, torch.empty_like(x[0]), right)
    above = torch.zeros_like(below) if comm.size > 1 else x[-1]
    return torch.vstack((above, x, below))


def forgets_to_use_what_comes_up(comm, x):
    right, left = _sides(comm)
    above = comm.send_recv(x[-1], right, torch.empty_like(x[0]), left)
    comm.send_recv(x[0], left, torch.empty_like(x[0]), right)
    return torch.cat((above[None], x, x[:1]))


def ends_of_a_chain(comm, x):
    if comm.size == 1:
        return torch.vstack((x[-1], x, x[0]))
    above, below = torch.zeros_like(x[0]), torch.zeros_like(x[0])
    if comm.rank > 0:
        comm.recv(above, comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(x[-1], comm.rank + 1)
        comm.recv(below, comm.rank + 1)
    if comm.rank > 0:
        comm.send(x[0], comm.rank - 1)
    return torch.vstack((above, x, below))


def nothing_beyond_the_ends(comm, x):
    if comm.size == 1:
        return torch.vstack((x[-1], x, x[0]))
    parts = [x]
    if comm.rank < comm.size - 1:
        comm.send(x[-1], comm.rank + 1)
    if comm.rank > 0:
        parts.insert(0, comm.recv(torch.empty_like(x[0]), comm.rank - 1)[None])
        comm.send(x[0], comm.rank - 1)
    if comm.rank < comm.size - 1:
        parts.append(comm.recv(torch.empty_like(x[0]), comm.rank + 1)[None])
    return torch.cat(parts)


def repeats_its_edge_at_the_ends(comm, x):
    if comm.size == 1:
        return torch.vstack((x[-1], x, x[0]))
    above, below = x[0].clone(), x[-1].clone()
    if comm.rank > 0:
        comm.recv(above, comm.rank - 1)
        comm.send(x[0], comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(x[-1], comm.rank + 1)
        comm.recv(below, comm.rank + 1)
    return torch.vstack((above, x, below))


def joins_them_the_other_way_round(comm, x):
    if comm.size == 1:
        return torch.vstack((x[-1], x, x[0]))
    right, left = _sides(comm)
    above = comm.send_recv(x[-1], right, torch.empty_like(x[0]), left)
    below = comm.send_recv(x[0], left, torch.empty_like(x[0]), right)
    return torch.cat((below[None], x, above[None]))


def sends_the_far_rows(comm, x):
    right, left = _sides(comm)
    above = comm.send_recv(x[0], right, torch.empty_like(x[0]), left)
    below = comm.send_recv(x[-1], left, torch.empty_like(x[0]), right)
    if comm.size == 1:
        above, below = below, above
    return torch.vstack((above, x, below))


def sends_one_row_both_ways(comm, x):
    right, left = _sides(comm)
    above = comm.send_recv(x[-1], right, torch.empty_like(x[0]), left)
    below = comm.send_recv(x[-1], left, torch.empty_like(x[0]), right)
    return torch.vstack((above, x, below if comm.size > 1 else x[0]))


def mixes_the_messages_of_two_ranks(comm, x):
    if comm.size == 1:
        return torch.vstack((x[-1], x, x[0]))
    right, left = _sides(comm)
    above, below = torch.empty_like(x[0]), torch.empty_like(x[0])
    if comm.rank == comm.size - 1:
        comm.recv(below, right) if comm.size == 2 else comm.recv(above, left)
        comm.recv(above, left) if comm.size == 2 else comm.recv(below, right)
        comm.send(x[-1], right)
        comm.send(x[0], left)
    elif comm.rank == 0:
        comm.send(x[-1], right)
        comm.send(x[0], left)
        comm.recv(below, right) if comm.size == 2 else comm.recv(above, left)
        comm.recv(above, left) if comm.size == 2 else comm.recv(below, right)
    else:
        comm.recv(above, left)
        comm.send(x[-1], right)
        comm.send(x[0], left)
        comm.recv(below, right)
    return torch.vstack((above, x, below))


def only_what_came(comm, x):
    right, left = _sides(comm)
    above = comm.send_recv(x[-1], right, torch.empty_like(x[0]), left)
    return torch.stack((above, comm.send_recv(x[0], left, torch.empty_like(x[0]), right)))


def rows_of_the_neighbours_alone(comm, x):
    right, left = _sides(comm)
    rows = [torch.zeros_like(x[0]), torch.zeros_like(x[0])]
    comm.send_recv(x[0], left, rows[1], right)
    comm.send_recv(x[-1], right, rows[0], left)
    return torch.vstack(rows)


def whole_strips_travel(comm, x):
    right, left = _sides(comm)
    before = comm.send_recv(x, right, torch.empty_like(x), left)
    after = comm.send_recv(x, left, torch.empty_like(x), right)
    return torch.vstack((before[-1], x, after[0]))


def both_edges_to_both_sides(comm, x):
    right, left = _sides(comm)
    edges = torch.stack((x[0], x[-1], x.mean(dim=0)))
    before = comm.send_recv(edges, right, torch.empty_like(edges), left)
    after = comm.send_recv(edges, left, torch.empty_like(edges), right)
    return torch.vstack((before[1], x, after[0]))


def gathers_all_edges(comm, x):
    edges = comm.all_gather(torch.stack((x[0], x[-1]))[None])
    right, left = _sides(comm)
    return torch.vstack((edges[left, 1], x, edges[right, 0]))


def waits_at_a_barrier(comm, x):
    right, left = _sides(comm)
    comm.barrier()
    above = comm.send_recv(x[-1], right, torch.empty_like(x[0]), left)
    comm.barrier()
    below = comm.send_recv(x[0], left, torch.empty_like(x[0]), right)
    return torch.vstack((above, x, below))


def goes_round_the_comm(comm, x):
    edges = [torch.empty(2, x.shape[1], dtype=x.dtype) for _ in range(comm.size)]
    if comm.size > 1:
        dist.all_gather(edges, torch.stack((x[0], x[-1])))
    else:
        edges = [torch.stack((x[0], x[-1]))]
    right, left = _sides(comm)
    return torch.vstack((edges[left][1], x, edges[right][0]))


def receives_from_where_it_sends(comm, x):
    if comm.size < 3:
        return _right(comm, x)
    right, left = _sides(comm)
    below = comm.send_recv(x[-1], right, torch.empty_like(x[0]), right)
    above = comm.send_recv(x[0], left, torch.empty_like(x[0]), left)
    return torch.vstack((above, x, below))


def waits_on_the_wrong_side(comm, x):
    if comm.size < 3:
        return _right(comm, x)
    right, left = _sides(comm)
    above = comm.send_recv(x[0], left, torch.empty_like(x[0]), left)
    below = comm.send_recv(x[-1], right, torch.empty_like(x[0]), right)
    return torch.vstack((above, x, below))


def writes_into_its_strip(comm, x):
    above, below = _right(comm, x)[[0, -1]]
    padded = torch.vstack((above, x, below))
    x[0] = above
    return padded


def uses_the_strip_as_room(comm, x):
    right, left = _sides(comm)
    mine = x.clone()
    above = comm.send_recv(mine[-1], right, x[0], left).clone()
    below = comm.send_recv(mine[0], left, x[-1], right).clone()
    return torch.vstack((above, mine, below))


def prints_them(comm, x):
    print(_right(comm, x))


def in_a_list(comm, x):
    above, below = _right(comm, x)[[0, -1]]
    return [above, x, below]


def forgets_the_second_dim(comm, x):
    return _right(comm, x).flatten()


def _sides(comm):
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def _right(comm, x):
    right, left = _sides(comm)
    above = comm.send_recv(x[-1], right, torch.empty_like(x[0]), left)
    below = comm.send_recv(x[0], left, torch.empty_like(x[0]), right)
    return torch.vstack((above, x, below))


WRONG = {
    "circular-wait": [as_it_was, sleeps_first, receives_first, both_sends_first],
    "alike-neighbours": [even_ranks_send_both_first, odd_ranks_wait_for_both],
    "exchange-dropped": [no_messages, frame_of_zeros, ignores_what_comes, wraps_its_own],
    "one-way-only": [only_downwards, only_upwards, forgets_to_use_what_comes_up],
    "not-a-ring": [ends_of_a_chain, nothing_beyond_the_ends, repeats_its_edge_at_the_ends],
    "borders-mixed-up": [
        joins_them_the_other_way_round,
        sends_the_far_rows,
        sends_one_row_both_ways,
        mixes_the_messages_of_two_ranks,
    ],
    "own-rows-missing": [only_what_came, rows_of_the_neighbours_alone],
    "sends-too-much": [whole_strips_travel, both_edges_to_both_sides],
    "forbidden-collective": [gathers_all_edges, waits_at_a_barrier],
    "went-round-the-comm": [goes_round_the_comm],
    "wrong-neighbour": [receives_from_where_it_sends, waits_on_the_wrong_side],
    "changes-input": [writes_into_its_strip, uses_the_strip_as_room],
    "wrong-type": [in_a_list],
    "wrong-shape": [forgets_the_second_dim],
    "returns-nothing": [prints_them],
}
