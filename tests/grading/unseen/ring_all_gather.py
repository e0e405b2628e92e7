"""Solutions of ring_all_gather as a class would hand them in."""


def appends_what_arrives(comm, chunk, sizes):
    import torch

    out, cur = [chunk], chunk
    for k in range(1, comm.size):
        got = torch.empty(sizes[(comm.rank - k) % comm.size], dtype=chunk.dtype)
        comm.send_recv(cur, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
        out.append(got)
        cur = got
    return torch.cat(out)


def never_passes_on(comm, chunk, sizes):
    import torch

    n = comm.size
    out = list(torch.zeros(sum(sizes), dtype=chunk.dtype).split(sizes))
    out[comm.rank].copy_(chunk)
    for k in range(1, n):
        comm.send_recv(chunk, (comm.rank + 1) % n, out[(comm.rank - k) % n], (comm.rank - 1) % n)
    return torch.cat(out)


def receives_into_a_copy_of_its_chunk(comm, chunk, sizes):
    import torch

    n = comm.size
    table = {comm.rank: chunk}
    cur = chunk
    for k in range(1, n):
        got = chunk.clone()
        comm.send_recv(cur, (comm.rank + 1) % n, got, (comm.rank - 1) % n)
        table[(comm.rank - k) % n] = cur = got
    return torch.cat([table[i] for i in range(n)])


def is_one_place_off(comm, chunk, sizes):
    import torch

    n = comm.size
    out = torch.zeros(sum(sizes), dtype=chunk.dtype).split(sizes)
    out[comm.rank].copy_(chunk)
    for k in range(n - 1):
        s, r = (comm.rank - k) % n, (comm.rank - k + 1) % n
        comm.send_recv(out[s], (comm.rank + 1) % n, out[r], (comm.rank - 1) % n)
    return torch.cat(out)


def uses_a_buffer_of_float32(comm, chunk, sizes):
    import torch

    n = comm.size
    out = [torch.zeros(size) for size in sizes]
    out[comm.rank] = chunk
    for k in range(n - 1):
        s, r = (comm.rank - k) % n, (comm.rank - k - 1) % n
        comm.send_recv(out[s], (comm.rank + 1) % n, out[r], (comm.rank - 1) % n)
    return torch.cat(out)


def sends_before_it_receives(comm, chunk, sizes):
    import torch

    n = comm.size
    out = {comm.rank: chunk}
    for k in range(n - 1):
        comm.send(out[(comm.rank - k) % n], (comm.rank + 1) % n)
        i = (comm.rank - k - 1) % n
        out[i] = comm.recv(chunk.new_zeros(sizes[i]), (comm.rank - 1) % n)
    return torch.cat([out[i] for i in range(n)])


def the_last_round_is_left_out(comm, chunk, sizes):
    import torch

    n = comm.size
    out = [torch.zeros(size, dtype=chunk.dtype) for size in sizes]
    out[comm.rank] = chunk
    for k in range(n - 2):
        s, r = (comm.rank - k) % n, (comm.rank - k - 1) % n
        comm.send_recv(out[s], (comm.rank + 1) % n, out[r], (comm.rank - 1) % n)
    return torch.cat(out)


def sends_the_whole_result_so_far(comm, chunk, sizes):
    import torch

    n, start = comm.size, sum(sizes[: comm.rank])
    out = torch.zeros(sum(sizes), dtype=chunk.dtype)
    out[start : start + len(chunk)] = chunk
    for _ in range(n - 1):
        got = torch.empty_like(out)
        comm.send_recv(out, (comm.rank + 1) % n, got, (comm.rank - 1) % n)
        out = torch.maximum(out, got)
    return out


def returns_nested_lists(comm, chunk, sizes):
    return [chunk.tolist()] * comm.size


def turns_to_the_left(comm, chunk, sizes):
    import torch

    n = comm.size
    out = [torch.empty(size, dtype=chunk.dtype) for size in sizes]
    out[comm.rank].copy_(chunk)
    for k in range(n - 1):
        s, r = (comm.rank + k) % n, (comm.rank + k + 1) % n
        comm.send_recv(out[s], (comm.rank - 1) % n, out[r], (comm.rank + 1) % n)
    return torch.cat(out)


def writes_into_slices_of_one_tensor(comm, chunk, sizes):
    import torch

    edges = [0]
    for size in sizes:
        edges.append(edges[-1] + size)
    out = torch.empty(edges[-1], dtype=chunk.dtype)

    def place(owner):
        owner %= comm.size
        return out[edges[owner] : edges[owner + 1]]

    place(comm.rank).copy_(chunk)
    for back in range(comm.size - 1):
        comm.send_recv(
            place(comm.rank - back),
            (comm.rank + 1) % comm.size,
            place(comm.rank - back - 1),
            (comm.rank - 1) % comm.size,
        )
    return out


def collects_and_turns_round(comm, chunk, sizes):
    import torch

    parts = [chunk]
    while len(parts) < comm.size:
        room = chunk.new_empty(sizes[comm.rank - len(parts)])
        parts.append(
            comm.send_recv(
                parts[-1], (comm.rank + 1) % comm.size, room, (comm.rank - 1) % comm.size
            )
        )
    turned = parts[::-1]
    cut = comm.size - 1 - comm.rank
    return torch.cat(turned[cut:] + turned[:cut])


def rank_0_sends_last(comm, chunk, sizes):
    import torch

    n, held = comm.size, {comm.rank: chunk.clone()}
    for k in range(n - 1):
        gone, new = (comm.rank - k) % n, (comm.rank - k - 1) % n
        held[new] = torch.zeros(sizes[new], dtype=chunk.dtype)
        if comm.rank:
            comm.send(held[gone], (comm.rank + 1) % n)
        comm.recv(held[new], (comm.rank - 1) % n)
        if not comm.rank:
            comm.send(held[gone], 1)
    return torch.cat([held[owner] for owner in sorted(held)])


WRONG = [
    appends_what_arrives,
    never_passes_on,
    receives_into_a_copy_of_its_chunk,
    is_one_place_off,
    uses_a_buffer_of_float32,
    sends_before_it_receives,
    the_last_round_is_left_out,
    sends_the_whole_result_so_far,
    returns_nested_lists,
]
RIGHT = [
    turns_to_the_left,
    writes_into_slices_of_one_tensor,
    collects_and_turns_round,
    rank_0_sends_last,
]
