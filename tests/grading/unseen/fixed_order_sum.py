"""Solutions of fixed_order_sum as a class would hand them in."""


def adds_as_parts_arrive(comm, x):
    import torch

    total, cur = x.clone(), x
    for _ in range(comm.size - 1):
        got = torch.empty_like(x)
        comm.send_recv(cur, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        total = total + got
        cur = got
    return total


def starts_from_its_own_part(comm, x):
    import torch

    total = x.float().clone()
    for shift in range(1, comm.size):
        got = torch.empty_like(x)
        comm.send_recv(x, (comm.rank - shift) % comm.size, got, (comm.rank + shift) % comm.size)
        total += got.float()
    return total.to(x.dtype)


def adds_in_bfloat16(comm, x):
    import torch

    parts = [None] * comm.size
    parts[comm.rank] = x
    for shift in range(1, comm.size):
        dst, src = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        parts[src] = comm.send_recv(x, dst, torch.empty_like(x), src)
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total


def adds_in_double_to_be_safe(comm, x):
    import torch

    parts = [None] * comm.size
    parts[comm.rank] = x
    for shift in range(1, comm.size):
        dst, src = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        parts[src] = comm.send_recv(x, dst, torch.empty_like(x), src)
    return sum(part.double() for part in parts).to(x.dtype)


def returns_float32_always(comm, x):
    import torch

    parts = [None] * comm.size
    parts[comm.rank] = x
    for shift in range(1, comm.size):
        dst, src = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        parts[src] = comm.send_recv(x, dst, torch.empty_like(x), src)
    total = torch.zeros(x.shape)
    for part in parts:
        total = total + part
    return total


def a_chain_whose_end_keeps_the_sum(comm, x):
    import torch

    total = x.float()
    if comm.rank > 0:
        total = comm.recv(torch.empty(x.shape), comm.rank - 1) + total
    if comm.rank + 1 < comm.size:
        comm.send(total, comm.rank + 1)
    return total.to(x.dtype)


def rank_0_receives_in_order_and_forgets_itself(comm, x):
    import torch

    if comm.rank:
        comm.send(x, 0)
        return comm.recv(torch.empty_like(x), 0)
    total = torch.zeros(x.shape)
    for r in range(1, comm.size):
        total = total + comm.recv(torch.empty_like(x), r).float()
    for r in range(1, comm.size):
        comm.send(total.to(x.dtype), r)
    return total.to(x.dtype)


def sums_by_pairs(comm, x):
    import torch

    parts = [None] * comm.size
    parts[comm.rank] = x.float()
    for shift in range(1, comm.size):
        dst, src = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        parts[src] = comm.send_recv(x.float(), dst, torch.empty(x.shape), src)
    while len(parts) > 1:
        pairs = [parts[i] + parts[i + 1] for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0].to(x.dtype)


def asks_everybody_at_once(comm, x):
    import torch

    parts = []
    for r in range(comm.size):
        if r == comm.rank:
            parts.append(x)
            for other in range(comm.size):
                if other != r:
                    comm.send(x, other)
        else:
            comm.send(x, r)
            parts.append(comm.recv(torch.empty_like(x), r))
    return sum(parts)


def a_chain_there_and_back(comm, x):
    import torch

    total = x.float()
    if comm.rank > 0:
        before = torch.empty_like(total)
        comm.recv(before, comm.rank - 1)
        total = before + total
    if comm.rank + 1 < comm.size:
        comm.send(total, comm.rank + 1)
        total = comm.recv(torch.empty_like(total), comm.rank + 1)
    if comm.rank > 0:
        comm.send(total, comm.rank - 1)
    return total.to(x.dtype)


def owners_of_pieces_add_in_order(comm, x):
    import torch

    n, wide = comm.size, x.flatten().float()
    pieces = wide.tensor_split(n)
    mine = {comm.rank: pieces[comm.rank]}
    for shift in range(1, n):
        dst, src = (comm.rank + shift) % n, (comm.rank - shift) % n
        mine[src] = comm.send_recv(pieces[dst], dst, torch.empty_like(pieces[comm.rank]), src)
    total = mine[0]
    for r in range(1, n):
        total = total + mine[r]
    whole = {comm.rank: total.contiguous()}
    for shift in range(1, n):
        dst, src = (comm.rank + shift) % n, (comm.rank - shift) % n
        whole[src] = comm.send_recv(whole[comm.rank], dst, torch.empty_like(pieces[src]), src)
    return torch.cat([whole[r] for r in range(n)]).reshape(x.shape).to(x.dtype)


def rank_0_adds_and_sends_to_each(comm, x):
    import torch

    if comm.rank:
        comm.send(x, 0)
        return comm.recv(torch.empty_like(x), 0)
    total = x.float()
    for r in range(1, comm.size):
        total = total + comm.recv(torch.empty_like(x), r).float()
    result = total.to(x.dtype)
    for r in range(1, comm.size):
        comm.send(result, r)
    return result.clone()


def a_ring_that_keeps_parts_and_sorts_them(comm, x):
    import torch

    owned = [(comm.rank, x)]
    for _ in range(comm.size - 1):
        owner, part = owned[-1]
        room = torch.empty_like(part)
        comm.send_recv(part, (comm.rank + 1) % comm.size, room, (comm.rank - 1) % comm.size)
        owned.append(((owner - 1) % comm.size, room))
    owned.sort(key=lambda pair: pair[0])
    total = torch.zeros(x.shape, dtype=torch.float32)
    for _, part in owned:
        total += part
    return total.type(x.dtype)


WRONG = [
    adds_as_parts_arrive,
    starts_from_its_own_part,
    adds_in_bfloat16,
    adds_in_double_to_be_safe,
    returns_float32_always,
    a_chain_whose_end_keeps_the_sum,
    rank_0_receives_in_order_and_forgets_itself,
    sums_by_pairs,
    asks_everybody_at_once,
]
RIGHT = [
    a_chain_there_and_back,
    owners_of_pieces_add_in_order,
    rank_0_adds_and_sends_to_each,
    a_ring_that_keeps_parts_and_sorts_them,
]
