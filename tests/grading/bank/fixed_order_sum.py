"""Wrong solutions of `fixed_order_sum`, by the diagnosis that each must get."""

import torch
import torch.distributed as dist


def calls_all_reduce(comm, x):
    return comm.all_reduce(x.clone())


def gathers_and_adds_in_order(comm, x):
    return _added(list(comm.all_gather(x[None])), x.dtype)


def takes_torchs_own(comm, x):
    parts = [torch.empty_like(x) for _ in range(comm.size)]
    if comm.size == 1:
        return x.clone()
    dist.all_gather(parts, x)
    return _added(parts, x.dtype)


def everyone_sends_to_everyone_first(comm, x):
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    for other in others:
        comm.send(x, other)
    parts = {other: comm.recv(torch.empty_like(x), other) for other in others}
    parts[comm.rank] = x
    return _added([parts[rank] for rank in range(comm.size)], x.dtype)


def everyone_receives_first(comm, x):
    parts = [
        x if rank == comm.rank else comm.recv(torch.empty_like(x), rank)
        for rank in range(comm.size)
    ]
    for rank in range(comm.size):
        if rank != comm.rank:
            comm.send(x, rank)
    return _added(parts, x.dtype)


def never_talks(comm, x):
    return x.clone()


def forgets_to_add(comm, x):
    _parts(comm, x)
    return x + 0


def a_chain_without_a_way_back(comm, x):
    total = x.float()
    if comm.rank:
        total = comm.recv(torch.empty_like(total), comm.rank - 1) + total
    if comm.rank < comm.size - 1:
        comm.send(total, comm.rank + 1)
    return total.to(x.dtype)


def rank_0_alone_adds(comm, x):
    if comm.rank:
        comm.send(x, 0)
        return x.clone()
    parts = [x] + [comm.recv(torch.empty_like(x), rank) for rank in range(1, comm.size)]
    return _added(parts, x.dtype)


def divides_by_the_ranks(comm, x):
    total = _added(_parts(comm, x), torch.float32) / comm.size
    return total.to(x.dtype)


def takes_the_mean_in_order(comm, x):
    total = torch.zeros_like(x, dtype=torch.float32)
    for part in _parts(comm, x):
        total += part
    return total.div(comm.size).to(x.dtype)


def adds_only_what_arrived(comm, x):
    if comm.size == 1:
        return x.clone()
    parts = _parts(comm, x)
    return _added([part for rank, part in enumerate(parts) if rank != comm.rank], x.dtype)


def rank_0_forgets_its_own(comm, x):
    if comm.size == 1:
        return x.clone()
    if comm.rank:
        comm.send(x, 0)
        return comm.recv(torch.empty_like(x), 0)
    total = _added([comm.recv(torch.empty_like(x), r) for r in range(1, comm.size)], x.dtype)
    for other in range(1, comm.size):
        comm.send(total, other)
    return total


def begins_with_its_own(comm, x):
    parts = _parts(comm, x)
    others = [part for rank, part in enumerate(parts) if rank != comm.rank]
    return _added([x, *others], x.dtype)


def begins_with_its_own_and_goes_down(comm, x):
    parts = _parts(comm, x)
    others = [part for rank, part in enumerate(parts) if rank != comm.rank]
    return _added([x, *others[::-1]], x.dtype)


def exchanges_and_adds_at_once(comm, x):
    total = x.float()
    for rank in range(comm.size):
        if rank < comm.rank:
            got = comm.recv(torch.empty_like(x), rank)
            comm.send(x, rank)
        elif rank > comm.rank:
            comm.send(x, rank)
            got = comm.recv(torch.empty_like(x), rank)
        if rank != comm.rank:
            total = total + got.float()
    return total.to(x.dtype)


def adds_as_they_come_round_the_ring(comm, x):
    total, travelling = x.float(), x
    for _ in range(comm.size - 1):
        travelling = comm.send_recv(
            travelling,
            (comm.rank + 1) % comm.size,
            torch.empty_like(x),
            (comm.rank - 1) % comm.size,
        )
        total = total + travelling.float()
    return total.to(x.dtype)


def adds_as_they_come_from_the_right(comm, x):
    total, travelling = x.float(), x
    for _ in range(comm.size - 1):
        travelling = comm.send_recv(
            travelling,
            (comm.rank - 1) % comm.size,
            torch.empty_like(x),
            (comm.rank + 1) % comm.size,
        )
        total = total + travelling.float()
    return total.to(x.dtype)


def a_ring_all_reduce(comm, x):
    n, rank = comm.size, comm.rank
    chunks = [chunk.clone() for chunk in x.flatten().float().tensor_split(n)]
    for step in range(2 * (n - 1)):
        out, into = (rank - step) % n, (rank - step - 1) % n
        room = torch.empty_like(chunks[into])
        got = comm.send_recv(chunks[out], (rank + 1) % n, room, (rank - 1) % n)
        chunks[into] = chunks[into] + got if step < n - 1 else got
    return torch.cat(chunks).view(x.shape).to(x.dtype)


def a_ring_all_reduce_to_the_left(comm, x):
    n, rank = comm.size, comm.rank
    chunks = [chunk.clone() for chunk in x.flatten().float().tensor_split(n)]
    for step in range(2 * (n - 1)):
        out, into = (rank + step) % n, (rank + step + 1) % n
        room = torch.empty_like(chunks[into])
        got = comm.send_recv(chunks[out], (rank - 1) % n, room, (rank + 1) % n)
        chunks[into] = chunks[into] + got if step < n - 1 else got
    return torch.cat(chunks).view(x.shape).to(x.dtype)


def each_chunks_owner_begins(comm, x):
    parts = [part.flatten() for part in _parts(comm, x)]
    cut = [part.tensor_split(comm.size) for part in parts]
    chunks = []
    for owner in range(comm.size):
        order = [(owner + step) % comm.size for step in range(comm.size)]
        chunks.append(_added([cut[rank][owner] for rank in order], x.dtype))
    return torch.cat(chunks).view(x.shape)


def adds_from_the_last(comm, x):
    return _added(_parts(comm, x)[::-1], x.dtype)


def a_chain_from_the_last_rank(comm, x):
    total = x.float()
    if comm.rank < comm.size - 1:
        total = comm.recv(torch.empty_like(total), comm.rank + 1) + total
    if comm.rank:
        comm.send(total, comm.rank - 1)
        total = comm.recv(torch.empty_like(total), comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(total, comm.rank + 1)
    return total.to(x.dtype)


def recursive_doubling(comm, x):
    power, total = 1 << (comm.size.bit_length() - 1), x.float()
    if comm.rank >= power:
        comm.send(total, comm.rank - power)
        return comm.recv(torch.empty_like(total), comm.rank - power).to(x.dtype)
    has_guest = comm.rank + power < comm.size
    if has_guest:
        total = total + comm.recv(torch.empty_like(total), comm.rank + power)
    distance = 1
    while distance < power:
        partner = comm.rank ^ distance
        total = total + comm.send_recv(total, partner, torch.empty_like(total), partner)
        distance *= 2
    if has_guest:
        comm.send(total, comm.rank + power)
    return total.to(x.dtype)


def adds_even_ranks_then_odd_ones(comm, x):
    parts = _parts(comm, x)
    even, odd = _added(parts[::2], torch.float32), parts[1::2]
    return (_added([even, _added(odd, torch.float32)], x.dtype)) if odd else even.to(x.dtype)


def adds_in_float64(comm, x):
    return torch.stack(_parts(comm, x)).double().sum(dim=0).to(x.dtype)


def sends_float64(comm, x):
    total = torch.zeros_like(x, dtype=torch.float64)
    for part in _parts(comm, x.double()):
        total = total + part
    return total.to(x.dtype)


def adds_in_the_type_of_x(comm, x):
    parts = _parts(comm, x)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def a_chain_in_the_type_of_x(comm, x):
    total = x.clone()
    if comm.rank:
        total = comm.recv(torch.empty_like(x), comm.rank - 1) + x
    if comm.rank < comm.size - 1:
        comm.send(total, comm.rank + 1)
        comm.recv(total, comm.rank + 1)
    if comm.rank:
        comm.send(total, comm.rank - 1)
    return total


def sends_bfloat16_to_save_bytes(comm, x):
    return _added(_parts(comm, x.bfloat16()), x.dtype)


def sends_bfloat16_and_keeps_its_own(comm, x):
    parts = _parts(comm, x.bfloat16())
    parts[comm.rank] = x
    return _added(parts, x.dtype)


def sends_float16_to_save_bytes(comm, x):
    if x.dtype != torch.float32:
        return _added(_parts(comm, x), x.dtype)
    return _added(_parts(comm, x.half()), x.dtype)


def begins_with_the_second_rank(comm, x):
    parts = _parts(comm, x)
    order = [parts[1], *parts[2:], parts[0]] if comm.size == 4 else [parts[0], *parts[:0:-1]]
    return x.clone() if comm.size == 1 else _sometimes(comm, order, parts, x.dtype)


def orders_by_the_right_neighbour(comm, x):
    parts = _parts(comm, x)
    first = (comm.rank + 1) % comm.size
    order = [first, *[rank for rank in range(comm.size) if rank != first]]
    return _added([parts[rank] for rank in order], x.dtype)


def adds_small_numbers_first(comm, x):
    whole = torch.stack(_parts(comm, x)).float()
    return _added(list(whole.gather(0, whole.abs().argsort(dim=0))), x.dtype)


def adds_into_x(comm, x):
    parts = [part.clone() for part in _parts(comm, x)]
    x.copy_(_added(parts, x.dtype))
    return x


def receives_into_x(comm, x):
    mine, parts = x.clone(), {comm.rank: x.clone()}
    for shift in range(1, comm.size):
        to, source = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        parts[source] = comm.send_recv(mine, to, x, source).clone()
    return _added([parts[rank] for rank in range(comm.size)], x.dtype)


def returns_float64(comm, x):
    return _added(_parts(comm, x), torch.float64)


def _sometimes(comm, order, parts, dtype):
    """Another order on the odd ranks only."""
    return _added(order if comm.rank % 2 else parts, dtype)


def _parts(comm, x):
    """All ranks' `x`, in rank order."""
    parts = {comm.rank: x}
    for shift in range(1, comm.size):
        to, source = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        parts[source] = comm.send_recv(x, to, torch.empty_like(x), source)
    return [parts[rank] for rank in range(comm.size)]


def _added(parts, dtype):
    """The parts in this order, added in float32."""
    total = parts[0].float()
    for part in parts[1:]:
        total = total + part.float()
    return total.to(dtype)


WRONG = {
    "forbidden-collective": [calls_all_reduce, gathers_and_adds_in_order],
    "went-round-the-comm": [takes_torchs_own],
    "circular-wait": [everyone_sends_to_everyone_first, everyone_receives_first],
    "missing-reduce": [never_talks, forgets_to_add],
    "only-one-rank": [a_chain_without_a_way_back, rank_0_alone_adds],
    "mean-instead-of-sum": [divides_by_the_ranks, takes_the_mean_in_order],
    "part-missing": [adds_only_what_arrived, rank_0_forgets_its_own],
    "own-first": [
        begins_with_its_own,
        begins_with_its_own_and_goes_down,
        exchanges_and_adds_at_once,
    ],
    "order-of-arrival": [adds_as_they_come_round_the_ring, adds_as_they_come_from_the_right],
    "order-by-chunk": [a_ring_all_reduce, a_ring_all_reduce_to_the_left, each_chunks_owner_begins],
    "reversed-order": [adds_from_the_last, a_chain_from_the_last_rank],
    "sums-of-pairs": [recursive_doubling, adds_even_ranks_then_odd_ones],
    "wider-sum": [adds_in_float64, sends_float64],
    "rounded-on-the-way": [adds_in_the_type_of_x, a_chain_in_the_type_of_x],
    "rounded-messages": [
        sends_bfloat16_to_save_bytes,
        sends_bfloat16_and_keeps_its_own,
        sends_float16_to_save_bytes,
    ],
    "another-order": [
        begins_with_the_second_rank,
        orders_by_the_right_neighbour,
        adds_small_numbers_first,
    ],
    "changes-input": [adds_into_x, receives_into_x],
    "wrong-dtype": [returns_float64],
}
