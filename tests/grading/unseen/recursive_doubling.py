"""Solutions of recursive_doubling as a class would hand them in."""


def forgets_that_ranks_may_be_missing(comm, x):
    import torch

    total, mask = x.clone(), 1
    while mask < comm.size:
        partner = comm.rank ^ mask
        got = torch.empty_like(x)
        comm.send_recv(total, partner, got, partner)
        total = total + got
        mask <<= 1
    return total


def skips_partners_that_are_not_there(comm, x):
    import math

    import torch

    total = x.clone()
    for k in range(math.ceil(math.log2(comm.size))):
        partner = comm.rank ^ 2**k
        if partner < comm.size:
            got = torch.empty_like(x)
            comm.send_recv(total, partner, got, partner)
            total += got
    return total


def takes_neighbours_at_growing_distance(comm, x):
    import torch

    total, d = x.clone(), 1
    while d < comm.size:
        got = torch.empty_like(x)
        comm.send_recv(total, (comm.rank + d) % comm.size, got, (comm.rank - d) % comm.size)
        total += got
        d *= 2
    return total


def uses_its_x_in_each_round(comm, x):
    import torch

    total, d = x.clone(), 1
    while 2 * d <= comm.size:
        partner = comm.rank ^ d
        if partner < comm.size:
            got = torch.empty_like(x)
            comm.send_recv(x, partner, got, partner)
            total += got
        d *= 2
    return total


def tells_nobody_in_the_end(comm, x):
    import torch

    p = 2 ** (comm.size.bit_length() - 1)
    total = x.clone()
    if comm.rank >= p:
        comm.send(x, comm.rank - p)
        return total
    if comm.rank < comm.size - p:
        total += comm.recv(torch.empty_like(x), comm.rank + p)
    d = 1
    while d < p:
        total += comm.send_recv(total, comm.rank ^ d, torch.empty_like(x), comm.rank ^ d)
        d *= 2
    return total


def the_lower_rank_never_receives(comm, x):
    import torch

    total, d = x.clone(), 1
    while d < comm.size:
        partner = comm.rank ^ d
        if partner < comm.size:
            if comm.rank < partner:
                comm.send(total, partner)
            else:
                total += comm.recv(torch.empty_like(x), partner)
        d *= 2
    return total


def partners_by_minus(comm, x):
    import torch

    total, d = x.clone(), 1
    while d < comm.size:
        partner = d - comm.rank
        total += comm.send_recv(total, partner, torch.empty_like(x), partner)
        d *= 2
    return total


def both_partners_send_first(comm, x):
    import torch

    p = 2 ** (comm.size.bit_length() - 1)
    if comm.rank >= p:
        comm.send(x, comm.rank - p)
        return comm.recv(torch.empty_like(x), comm.rank - p)
    total = x.clone()
    if comm.rank + p < comm.size:
        total += comm.recv(torch.empty_like(x), comm.rank + p)
    d = 1
    while d < p:
        comm.send(total, comm.rank ^ d)
        total += comm.recv(torch.empty_like(x), comm.rank ^ d)
        d *= 2
    if comm.rank + p < comm.size:
        comm.send(total, comm.rank + p)
    return total


def sends_to_a_root_and_back(comm, x):
    import torch

    if comm.rank == 0:
        total = x.clone()
        for r in range(1, comm.size):
            total += comm.recv(torch.empty_like(x), r)
        for r in range(1, comm.size):
            comm.send(total, r)
        return total
    comm.send(x, 0)
    return comm.recv(torch.zeros_like(x), 0)


def starts_with_the_farthest(comm, x):
    import torch

    p = 1
    while 2 * p <= comm.size:
        p *= 2
    if comm.rank >= p:
        comm.send(x, comm.rank - p)
        return comm.recv(torch.zeros_like(x), comm.rank - p)
    guest = comm.rank + p if comm.rank + p < comm.size else None
    total = x + comm.recv(torch.zeros_like(x), guest) if guest is not None else x.clone()
    d = p // 2
    while d >= 1:
        total = total + comm.send_recv(total, comm.rank ^ d, torch.zeros_like(x), comm.rank ^ d)
        d //= 2
    if guest is not None:
        comm.send(total, guest)
    return total


def odd_ranks_of_the_first_pairs_step_aside(comm, x):
    import torch

    p = 1 << (comm.size.bit_length() - 1)
    rest, rank = comm.size - p, comm.rank
    total = x.clone()
    if rank < 2 * rest and rank % 2:
        comm.send(x, rank - 1)
        return comm.recv(total, rank - 1)
    if rank < 2 * rest:
        total += comm.recv(torch.empty_like(x), rank + 1)
    me = rank // 2 if rank < 2 * rest else rank - rest
    d = 1
    while d < p:
        other = me ^ d
        other = 2 * other if other < rest else other + rest
        if rank < other:
            comm.send(total, other)
            got = comm.recv(torch.empty_like(x), other)
        else:
            got = comm.recv(torch.empty_like(x), other)
            comm.send(total, other)
        total = total + got
        d *= 2
    if rank < 2 * rest:
        comm.send(total, rank + 1)
    return total


def calls_itself_on_half_the_ranks(comm, x):
    import torch

    def level(total, size):
        if size == 1:
            return total
        total = level(total, size // 2)
        partner = comm.rank ^ (size // 2)
        return total + comm.send_recv(total, partner, torch.empty_like(x), partner)

    size = 1
    while size * 2 <= comm.size:
        size *= 2
    if comm.rank >= size:
        comm.send(x, comm.size - 1 - comm.rank)
        return comm.recv(torch.empty_like(x), comm.size - 1 - comm.rank)
    guest = comm.size - 1 - comm.rank
    if guest < size:
        return level(x, size) + 0
    got = comm.recv(torch.empty_like(x), guest)
    total = level(x + got, size)
    comm.send(total, guest)
    return total


WRONG = [
    forgets_that_ranks_may_be_missing,
    skips_partners_that_are_not_there,
    takes_neighbours_at_growing_distance,
    uses_its_x_in_each_round,
    tells_nobody_in_the_end,
    the_lower_rank_never_receives,
    partners_by_minus,
    both_partners_send_first,
    sends_to_a_root_and_back,
]
RIGHT = [
    starts_with_the_farthest,
    odd_ranks_of_the_first_pairs_step_aside,
    calls_itself_on_half_the_ranks,
]
