"""Solutions of all_reduce_by_hand as a class would hand them in."""


def swaps_with_its_right_neighbour_once(comm, x):
    import torch

    if comm.size == 1:
        return x
    got = torch.empty_like(x)
    comm.send_recv(x, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
    return x + got


def everybody_sends_first(comm, x):
    import torch

    total = x.clone()
    for other in range(comm.size):
        if other != comm.rank:
            comm.send(x, other)
    for other in range(comm.size):
        if other != comm.rank:
            total += comm.recv(torch.empty_like(x), other)
    return total


def goes_round_once_too_often(comm, x):
    import torch

    total, current = x.clone(), x
    for _ in range(comm.size):
        got = torch.empty_like(x)
        comm.send_recv(current, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        total = total + got
        current = got
    return total


def only_rank_zero_learns_the_sum(comm, x):
    import torch

    if comm.rank > 0:
        comm.send(x, 0)
        return x
    total = x.clone()
    for other in range(1, comm.size):
        total += comm.recv(torch.empty_like(x), other)
    return total


def passes_the_running_sum_round_the_ring(comm, x):
    import torch

    total = x.clone()
    for _ in range(comm.size - 1):
        got = torch.empty_like(x)
        comm.send_recv(total, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        total = total + got
    return total


def adds_into_its_argument(comm, x):
    import torch

    mine = x.clone()
    for _ in range(comm.size - 1):
        got = torch.empty_like(x)
        comm.send_recv(mine, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        x += got
        mine = got
    return x


def receives_into_a_vector(comm, x):
    import torch

    total, current = x.clone(), x
    for _ in range(comm.size - 1):
        got = torch.empty(x.numel())
        comm.send_recv(current, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        total = total + got.view(x.shape)
        current = got
    return total


def gathers_and_adds(comm, x):
    return comm.all_gather(x.unsqueeze(0)).sum(0)


def only_pairs_meet(comm, x):
    import torch

    partner = comm.rank ^ 1
    if partner >= comm.size:
        return x.clone()
    got = torch.empty_like(x)
    comm.send_recv(x, partner, got, partner)
    return x + got


def returns_the_flat_sum(comm, x):
    import torch

    flat = x.flatten()
    total, current = flat.clone(), flat
    for _ in range(comm.size - 1):
        got = torch.empty_like(flat)
        comm.send_recv(current, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        total += got
        current = got
    return total


def forgets_to_return(comm, x):
    import torch

    total, current = x.clone(), x
    for _ in range(comm.size - 1):
        got = torch.empty_like(x)
        comm.send_recv(current, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        total += got
        current = got


def a_star_round_rank_zero(comm, x):
    import torch

    total = x.clone()
    if comm.rank == 0:
        for other in range(1, comm.size):
            total += comm.recv(torch.empty_like(x), other)
        for other in range(1, comm.size):
            comm.send(total, other)
        return total
    comm.send(x, 0)
    return comm.recv(total, 0)


def everybody_with_everybody_by_rank_order(comm, x):
    import torch

    parts = {comm.rank: x}
    for low in range(comm.size):
        for high in range(low + 1, comm.size):
            if comm.rank == low:
                comm.send(x, high)
                parts[high] = comm.recv(torch.zeros_like(x), high)
            elif comm.rank == high:
                parts[low] = comm.recv(torch.zeros_like(x), low)
                comm.send(x, low)
    return torch.stack([parts[r] for r in range(comm.size)]).sum(dim=0)


def a_ring_to_the_left_with_itself_at_one_rank(comm, x):
    import torch

    held = [x]
    while len(held) < comm.size:
        left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        held.append(comm.send_recv(held[-1], left, torch.empty_like(x), right))
    if comm.size == 1:
        return comm.send_recv(x, 0, torch.empty_like(x), 0)
    return sum(held)


def a_chain_there_and_back(comm, x):
    total = x.clone()
    if comm.rank > 0:
        comm.recv(total, comm.rank - 1)
        total.add_(x)
    if comm.rank < comm.size - 1:
        comm.send(total, comm.rank + 1)
        comm.recv(total, comm.rank + 1)
    if comm.rank > 0:
        comm.send(total, comm.rank - 1)
    return total


def doubling_with_partners_and_a_rest(comm, x):
    import torch

    if comm.size & (comm.size - 1):
        found = x.clone()
        for giver in range(comm.size):
            for taker in range(comm.size):
                if giver == comm.rank != taker:
                    comm.send(x, taker)
                elif taker == comm.rank != giver:
                    found += comm.recv(torch.empty_like(x), giver)
        return found
    found, step = x, 1
    while step < comm.size:
        partner = comm.rank ^ step
        found = found + comm.send_recv(found, partner, torch.empty_like(x), partner)
        step *= 2
    return found


WRONG = [
    swaps_with_its_right_neighbour_once,
    everybody_sends_first,
    goes_round_once_too_often,
    only_rank_zero_learns_the_sum,
    passes_the_running_sum_round_the_ring,
    adds_into_its_argument,
    receives_into_a_vector,
    gathers_and_adds,
    only_pairs_meet,
    returns_the_flat_sum,
    forgets_to_return,
]
RIGHT = [
    a_star_round_rank_zero,
    everybody_with_everybody_by_rank_order,
    a_ring_to_the_left_with_itself_at_one_rank,
    a_chain_there_and_back,
    doubling_with_partners_and_a_rest,
]
