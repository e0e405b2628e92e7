"""Wrong solutions of `ring_all_gather`, by the diagnosis that each must get."""

import torch
import torch.distributed as dist


def gathers_padded_chunks(comm, chunk, sizes):
    padded = chunk.new_zeros(max(sizes))
    padded[: len(chunk)] = chunk
    rows = comm.all_gather(padded[None])
    return torch.cat([row[:size] for row, size in zip(rows, sizes, strict=True)])


def broadcasts_in_turn(comm, chunk, sizes):
    parts = []
    for owner, size in enumerate(sizes):
        part = chunk.clone() if owner == comm.rank else chunk.new_zeros(size)
        parts.append(comm.broadcast(part, owner))
    return torch.cat(parts)


def adds_up_with_the_collective(comm, chunk, sizes):
    out = chunk.new_zeros(sum(sizes))
    start = sum(sizes[: comm.rank])
    out[start : start + len(chunk)] = chunk
    return comm.all_reduce(out)


def takes_torchs_own(comm, chunk, sizes):
    parts = [chunk.new_zeros(size) for size in sizes]
    if comm.size == 1:
        return chunk.clone()
    for owner, part in enumerate(parts):
        if owner == comm.rank:
            part.copy_(chunk)
        dist.broadcast(part, owner)
    return torch.cat(parts)


def receives_from_where_it_sends(comm, chunk, sizes):
    right, held, travelling = (comm.rank + 1) % comm.size, {comm.rank: chunk}, chunk
    for step in range(1, comm.size):
        owner = (comm.rank - step) % comm.size
        travelling = comm.send_recv(travelling, right, chunk.new_empty(sizes[owner]), right)
        held[owner] = travelling
    return torch.cat([held[owner] for owner in range(comm.size)])


def listens_to_the_left_and_sends_there(comm, chunk, sizes):
    left, held, travelling = (comm.rank - 1) % comm.size, {comm.rank: chunk}, chunk
    for step in range(1, comm.size):
        owner = (comm.rank - step) % comm.size
        travelling = comm.send_recv(travelling, left, chunk.new_empty(sizes[owner]), left)
        held[owner] = travelling
    return torch.cat([held[owner] for owner in range(comm.size)])


def all_send_first(comm, chunk, sizes):
    held, travelling = {comm.rank: chunk}, chunk
    for step in range(1, comm.size):
        owner = (comm.rank - step) % comm.size
        comm.send(travelling, (comm.rank + 1) % comm.size)
        travelling = comm.recv(chunk.new_empty(sizes[owner]), (comm.rank - 1) % comm.size)
        held[owner] = travelling
    return torch.cat([held[owner] for owner in range(comm.size)])


def everybody_receives_from_everybody(comm, chunk, sizes):
    parts = [
        chunk.clone() if owner == comm.rank else comm.recv(chunk.new_empty(sizes[owner]), owner)
        for owner in range(comm.size)
    ]
    for other in range(comm.size):
        if other != comm.rank:
            comm.send(chunk, other)
    return torch.cat(parts)


def returns_its_chunk(comm, chunk, sizes):
    return chunk.clone()


def puts_its_chunk_in_its_place(comm, chunk, sizes):
    out = chunk.new_zeros(sum(sizes))
    start = sum(sizes[: comm.rank])
    out[start : start + sizes[comm.rank]] = chunk
    return out


def joins_as_they_come(comm, chunk, sizes):
    return torch.cat(_arrivals(comm, chunk, sizes))


def joins_the_last_first(comm, chunk, sizes):
    return torch.cat(_arrivals(comm, chunk, sizes)[::-1])


def joins_as_they_come_from_the_right(comm, chunk, sizes):
    parts = [chunk]
    for step in range(1, comm.size):
        room = chunk.new_empty(sizes[(comm.rank + step) % comm.size])
        parts.append(
            comm.send_recv(
                parts[-1], (comm.rank - 1) % comm.size, room, (comm.rank + 1) % comm.size
            )
        )
    return torch.cat(parts)


def sends_its_own_in_every_step(comm, chunk, sizes):
    held = {comm.rank: chunk}
    for step in range(1, comm.size):
        owner = (comm.rank - step) % comm.size
        room = chunk.new_empty(sizes[owner])
        held[owner] = comm.send_recv(
            chunk, (comm.rank + 1) % comm.size, room, (comm.rank - 1) % comm.size
        )
    return torch.cat([held[owner] for owner in range(comm.size)])


def sends_its_own_to_the_left_in_every_step(comm, chunk, sizes):
    out = list(chunk.new_zeros(sum(sizes)).split(sizes))
    out[comm.rank].copy_(chunk)
    for step in range(1, comm.size):
        room = out[(comm.rank + step) % comm.size]
        comm.send_recv(chunk, (comm.rank - 1) % comm.size, room, (comm.rank + 1) % comm.size)
    return torch.cat(out)


def stops_a_step_early(comm, chunk, sizes):
    parts = list(chunk.new_zeros(sum(sizes)).split(sizes))
    parts[comm.rank].copy_(chunk)
    for step in range(comm.size - 2 if comm.size > 2 else comm.size - 1):
        leaves, comes = (comm.rank - step) % comm.size, (comm.rank - step - 1) % comm.size
        comm.send_recv(
            parts[leaves], (comm.rank + 1) % comm.size, parts[comes], (comm.rank - 1) % comm.size
        )
    return torch.cat(parts)


def exchanges_with_both_neighbours_only(comm, chunk, sizes):
    n, rank = comm.size, comm.rank
    held = {rank: chunk}
    for step in (1, -1) if n > 2 else (1,) * (n - 1):
        other, source = (rank + step) % n, (rank - step) % n
        held[source] = comm.send_recv(chunk, other, chunk.new_empty(sizes[source]), source)
    return torch.cat([held[owner] for owner in sorted(held)])


def writes_what_comes_one_place_off(comm, chunk, sizes):
    n, rank = comm.size, comm.rank
    if n == 2:
        return torch.cat(_in_rank_order(comm, chunk, sizes))
    out = list(chunk.new_zeros(sum(sizes)).split(sizes))
    out[rank], travelling = chunk, chunk
    for step in range(n - 1):
        owner = (rank - step - 2) % n
        room = chunk.new_empty(sizes[owner])
        travelling = comm.send_recv(travelling, (rank + 1) % n, room, (rank - 1) % n)
        out[owner] = travelling
    return torch.cat(out)


def counts_one_way_and_sends_the_other(comm, chunk, sizes):
    n, rank = comm.size, comm.rank
    held, travelling = {rank: chunk}, chunk
    for step in range(1, n):
        owner = (rank + step) % n
        room = chunk.new_empty(sizes[owner])
        travelling = comm.send_recv(travelling, (rank + 1) % n, room, (rank - 1) % n)
        held[owner] = travelling
    return torch.cat([held[owner] for owner in range(n)])


def makes_room_like_its_own(comm, chunk, sizes):
    n, rank = comm.size, comm.rank
    held, travelling = {rank: chunk}, chunk
    for step in range(1, n):
        room = torch.empty_like(chunk)
        travelling = comm.send_recv(travelling, (rank + 1) % n, room, (rank - 1) % n)
        held[(rank - step) % n] = travelling
    return torch.cat([held[owner] for owner in range(n)])


def takes_all_sizes_for_equal(comm, chunk, sizes):
    n, rank = comm.size, comm.rank
    out = chunk.new_zeros(n, len(chunk))
    out[rank] = chunk
    for step in range(n - 1):
        leaves, comes = (rank - step) % n, (rank - step - 1) % n
        comm.send_recv(out[leaves], (rank + 1) % n, out[comes], (rank - 1) % n)
    return out.flatten()


def adds_what_comes(comm, chunk, sizes):
    return sum(_in_rank_order(comm, chunk, sizes)) if comm.size > 1 else chunk.clone()


def keeps_a_running_sum(comm, chunk, sizes):
    total, travelling = chunk.clone(), chunk
    for step in range(1, comm.size):
        room = chunk.new_empty(sizes[(comm.rank - step) % comm.size])
        travelling = comm.send_recv(
            travelling, (comm.rank + 1) % comm.size, room, (comm.rank - 1) % comm.size
        )
        total += travelling
    return total


def rank_0_collects_and_hands_out(comm, chunk, sizes):
    if comm.rank:
        comm.send(chunk, 0)
        return comm.recv(chunk.new_empty(sum(sizes)), 0)
    parts = [chunk]
    for owner in range(1, comm.size):
        parts.append(comm.recv(chunk.new_empty(sizes[owner]), owner))
    whole = torch.cat(parts)
    for other in range(1, comm.size):
        comm.send(whole, other)
    return whole


def adds_whole_tensors_of_zeros(comm, chunk, sizes):
    mine = chunk.new_zeros(sum(sizes))
    start = sum(sizes[: comm.rank])
    mine[start : start + len(chunk)] = chunk
    total, travelling = mine.clone(), mine
    for _ in range(comm.size - 1):
        travelling = comm.send_recv(
            travelling,
            (comm.rank + 1) % comm.size,
            torch.empty_like(mine),
            (comm.rank - 1) % comm.size,
        )
        total += travelling
    return total


def receives_into_its_chunk(comm, chunk, sizes):
    n, rank = comm.size, comm.rank
    if len(set(sizes)) > 1:
        return torch.cat(_in_rank_order(comm, chunk, sizes))
    held = {rank: chunk.clone()}
    for step in range(1, n):
        out = held[(rank - step + 1) % n]
        comm.send_recv(out, (rank + 1) % n, chunk, (rank - 1) % n)
        held[(rank - step) % n] = chunk.clone()
    return torch.cat([held[owner] for owner in range(n)])


def uses_up_the_sizes(comm, chunk, sizes):
    parts = _in_rank_order(comm, chunk, sizes)
    ordered = []
    while sizes:
        sizes.pop()
        ordered.insert(0, parts[len(sizes)])
    return torch.cat(ordered)


def returns_a_list(comm, chunk, sizes):
    return _in_rank_order(comm, chunk, sizes)


def _arrivals(comm, chunk, sizes):
    """The chunks as they come, its own first; right up to their order."""
    parts = [chunk]
    for step in range(1, comm.size):
        room = chunk.new_empty(sizes[(comm.rank - step) % comm.size])
        parts.append(
            comm.send_recv(
                parts[-1], (comm.rank + 1) % comm.size, room, (comm.rank - 1) % comm.size
            )
        )
    return parts


def _in_rank_order(comm, chunk, sizes):
    came = _arrivals(comm, chunk, sizes)
    return [came[(comm.rank - owner) % comm.size] for owner in range(comm.size)]


WRONG = {
    "forbidden-collective": [
        gathers_padded_chunks,
        broadcasts_in_turn,
        adds_up_with_the_collective,
    ],
    "went-round-the-comm": [takes_torchs_own],
    "wrong-neighbour": [receives_from_where_it_sends, listens_to_the_left_and_sends_there],
    "circular-wait": [all_send_first, everybody_receives_from_everybody],
    "missing-gather": [returns_its_chunk, puts_its_chunk_in_its_place],
    "order-of-arrival": [
        joins_as_they_come,
        joins_the_last_first,
        joins_as_they_come_from_the_right,
    ],
    "same-chunk-again": [sends_its_own_in_every_step, sends_its_own_to_the_left_in_every_step],
    "chunk-missing": [stops_a_step_early, exchanges_with_both_neighbours_only],
    "wrong-place": [writes_what_comes_one_place_off, counts_one_way_and_sends_the_other],
    "room-like-own-chunk": [makes_room_like_its_own, takes_all_sizes_for_equal],
    "chunks-added": [adds_what_comes, keeps_a_running_sum],
    "sends-too-much": [rank_0_collects_and_hands_out, adds_whole_tensors_of_zeros],
    "changes-input": [receives_into_its_chunk, uses_up_the_sizes],
    "wrong-type": [returns_a_list],
}
