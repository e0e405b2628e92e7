"""Solutions of ring_reduce_scatter as a class would hand them in."""


def follows_the_lesson_and_returns_its_own_index(comm, x):
    import torch

    n = comm.size
    buf = [c.clone() for c in torch.tensor_split(x, n)]
    for k in range(n - 1):
        s = (comm.rank - k) % n
        r = (comm.rank - k - 1) % n
        got = torch.empty_like(buf[r])
        comm.send_recv(buf[s], (comm.rank + 1) % n, got, (comm.rank - 1) % n)
        buf[r] = buf[r] + got
    return buf[comm.rank]


def cuts_with_integer_division(comm, x):
    import torch

    n = comm.size
    step = x.numel() // n
    acc = x[((comm.rank - 1) % n) * step : ((comm.rank - 1) % n + 1) * step].clone()
    for k in range(2, n + 1):
        i = (comm.rank - k) % n
        got = torch.zeros(step, dtype=x.dtype)
        comm.send_recv(acc, (comm.rank + 1) % n, got, (comm.rank - 1) % n)
        acc = got + x[i * step : (i + 1) * step]
    return acc


def goes_round_n_times(comm, x):
    import torch

    n = comm.size
    chunks = x.tensor_split(n)
    cur = chunks[comm.rank].clone()
    for k in range(n):
        nxt = chunks[(comm.rank - k - 1) % n]
        got = torch.empty_like(nxt)
        comm.send_recv(cur, (comm.rank + 1) % n, got, (comm.rank - 1) % n)
        cur = got + nxt
    return cur


def accumulates_in_place(comm, x):
    import torch

    n = comm.size
    c = x.tensor_split(n)
    for k in range(1, n):
        a, b = (comm.rank - k) % n, (comm.rank - k - 1) % n
        c[b].add_(
            comm.send_recv(c[a], (comm.rank + 1) % n, torch.empty_like(c[b]), (comm.rank - 1) % n)
        )
    return c[comm.rank].clone()


def stacks_the_chunks(comm, x):
    import torch

    n = comm.size
    chunks = torch.stack(x.tensor_split(n))
    acc = chunks[(comm.rank - 1) % n].clone()
    for k in range(2, n + 1):
        got = torch.empty_like(acc)
        comm.send_recv(acc, (comm.rank + 1) % n, got, (comm.rank - 1) % n)
        acc = got + chunks[(comm.rank - k) % n]
    return acc


def everybody_asks_the_owner_to_add(comm, x):
    import torch

    chunks = x.tensor_split(comm.size)
    mine = chunks[comm.rank].clone()
    for other in range(comm.size):
        if other != comm.rank:
            comm.send(chunks[other], other)
    for other in range(comm.size):
        if other != comm.rank:
            mine += comm.recv(torch.empty_like(mine), other)
    return mine


def turns_to_the_left_with_right_hand_numbers(comm, x):
    import torch

    n = comm.size
    chunks = x.tensor_split(n)
    acc = chunks[(comm.rank - 1) % n].clone()
    for k in range(2, n + 1):
        mine = chunks[(comm.rank - k) % n]
        got = torch.empty_like(mine)
        comm.send_recv(acc, (comm.rank - 1) % n, got, (comm.rank + 1) % n)
        acc = mine + got
    return acc


def all_reduces_by_ring_and_slices(comm, x):
    import torch

    total, cur = x.clone(), x
    for _ in range(comm.size - 1):
        got = torch.empty_like(x)
        comm.send_recv(cur, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        total += got
        cur = got
    return total.tensor_split(comm.size)[comm.rank]


def returns_the_list(comm, x):
    return list(x.tensor_split(comm.size))


def a_ring_to_the_left(comm, x):
    import torch

    n = comm.size
    chunks = x.tensor_split(n)
    acc = chunks[(comm.rank + 1) % n].clone()
    for k in range(2, n + 1):
        mine = chunks[(comm.rank + k) % n]
        acc = mine + comm.send_recv(
            acc, (comm.rank - 1) % n, torch.empty_like(mine), (comm.rank + 1) % n
        )
    return acc


def every_owner_gets_its_parts_directly(comm, x):
    import torch

    chunks = x.tensor_split(comm.size)
    total = chunks[comm.rank].clone()
    for shift in range(1, comm.size):
        dst, src = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        total += comm.send_recv(chunks[dst], dst, torch.empty_like(total), src)
    return total


def even_ranks_send_first(comm, x):
    import torch

    n = comm.size
    if n == 1:
        return x.clone()
    right, left = (comm.rank + 1) % n, (comm.rank - 1) % n
    work = [c.clone() for c in x.tensor_split(n)]
    for k in range(1, n):
        out, into = work[(comm.rank - k) % n], work[(comm.rank - k - 1) % n]
        got = torch.zeros_like(into)
        if comm.rank % 2 == 0:
            comm.send(out, right)
            comm.recv(got, left)
        else:
            comm.recv(got, left)
            comm.send(out, right)
        into += got
    return work[comm.rank]


def pads_to_equal_chunks_and_cuts_back(comm, x):
    import torch

    n = comm.size
    pieces = x.tensor_split(n)
    width = max(len(piece) for piece in pieces)
    table = torch.zeros(n, width, dtype=x.dtype)
    for row, piece in zip(table, pieces, strict=True):
        row[: len(piece)] = piece
    acc = table[(comm.rank - 1) % n].clone()
    for k in range(2, n + 1):
        got = comm.send_recv(acc, (comm.rank + 1) % n, torch.empty_like(acc), (comm.rank - 1) % n)
        acc = got + table[(comm.rank - k) % n]
    return acc[: len(pieces[comm.rank])]


WRONG = [
    follows_the_lesson_and_returns_its_own_index,
    cuts_with_integer_division,
    goes_round_n_times,
    accumulates_in_place,
    stacks_the_chunks,
    everybody_asks_the_owner_to_add,
    turns_to_the_left_with_right_hand_numbers,
    all_reduces_by_ring_and_slices,
    returns_the_list,
]
RIGHT = [
    a_ring_to_the_left,
    every_owner_gets_its_parts_directly,
    even_ranks_send_first,
    pads_to_equal_chunks_and_cuts_back,
]
