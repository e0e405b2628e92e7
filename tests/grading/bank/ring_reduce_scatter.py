"""Wrong solutions of `ring_reduce_scatter`, by the diagnosis that each must get."""

import torch
import torch.distributed as dist


def reduces_with_the_collective(comm, x):
    total = comm.all_reduce(x.clone())
    return total.tensor_split(comm.size)[comm.rank].clone()


def gathers_all_and_adds(comm, x):
    whole = comm.all_gather(x[None]).sum(dim=0)
    return whole.tensor_split(comm.size)[comm.rank]


def takes_torchs_own(comm, x):
    total = x.clone()
    if comm.size > 1:
        dist.all_reduce(total)
    return total.tensor_split(comm.size)[comm.rank]


def receives_from_where_it_sends(comm, x):
    n, right = comm.size, (comm.rank + 1) % comm.size
    chunks = list(x.tensor_split(n))
    travelling = chunks[comm.rank - 1]
    for step in range(2, n + 1):
        own = chunks[(comm.rank - step) % n]
        travelling = own + comm.send_recv(travelling, right, torch.empty_like(own), right)
    return travelling.clone()


def receives_from_the_side_it_sends_to(comm, x):
    left, chunks = (comm.rank - 1) % comm.size, x.tensor_split(comm.size)
    total = chunks[(comm.rank + 1) % comm.size].clone()
    for step in range(2, comm.size + 1):
        mine = chunks[(comm.rank + step) % comm.size]
        got = torch.zeros_like(mine)
        comm.send_recv(total, left, got, left)
        total = got + mine
    return total


def all_send_first(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[(rank - 1) % n].clone()
    for step in range(2, n + 1):
        own = chunks[(rank - step) % n]
        comm.send(travelling, (rank + 1) % n)
        travelling = comm.recv(torch.empty_like(own), (rank - 1) % n) + own
    return travelling


def all_receive_first(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[(rank - 1) % n].clone()
    for step in range(2, n + 1):
        own = chunks[(rank - step) % n]
        arrived = comm.recv(torch.empty_like(own), (rank - 1) % n)
        comm.send(travelling, (rank + 1) % n)
        travelling = arrived + own
    return travelling


def cuts_with_chunk(comm, x):
    return _ring(comm, x.chunk(comm.size))


def cuts_by_rounding_down(comm, x):
    width = len(x) // comm.size
    return _ring(comm, [x[rank * width : (rank + 1) * width] for rank in range(comm.size)])


def gives_the_rest_to_the_last(comm, x):
    n, width = comm.size, len(x) // comm.size
    edges = [rank * width for rank in range(n)] + [len(x)]
    return _ring(comm, [x[edges[rank] : edges[rank + 1]] for rank in range(n)])


def pads_and_keeps_the_padding(comm, x):
    n = comm.size
    padded = torch.cat((x, torch.zeros(-len(x) % n, dtype=x.dtype)))
    return _ring(comm, padded.reshape(n, -1))


def deals_the_numbers_out(comm, x):
    return _ring(comm, [x[rank :: comm.size].contiguous() for rank in range(comm.size)])


def starts_with_its_own_chunk(comm, x):
    n = comm.size
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for step in range(n - 1):
        out, into = (comm.rank - step) % n, (comm.rank - step - 1) % n
        room = torch.empty_like(chunks[into])
        chunks[into] += comm.send_recv(chunks[out], (comm.rank + 1) % n, room, (comm.rank - 1) % n)
    return chunks[(comm.rank + 1) % n]


def starts_with_its_own_chunk_to_the_left(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[rank].clone()
    for step in range(1, n):
        own = chunks[(rank + step) % n]
        travelling = own + comm.send_recv(
            travelling, (rank - 1) % n, torch.empty_like(own), (rank + 1) % n
        )
    return travelling


def counts_chunks_from_the_end(comm, x):
    return _ring(comm, x.tensor_split(comm.size), owner=lambda rank: comm.size - 1 - rank)


def every_rank_returns_the_first(comm, x):
    mine = _ring(comm, x.tensor_split(comm.size))
    first = x.tensor_split(comm.size)[0]
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.send(mine, other)
        return mine
    return comm.recv(torch.empty_like(first), 0)


def returns_its_place_of_a_ring_that_ends_elsewhere(comm, x):
    n = comm.size
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for step in range(n - 1):
        out, into = (comm.rank - step) % n, (comm.rank - step - 1) % n
        room = torch.empty_like(chunks[into])
        chunks[into] += comm.send_recv(chunks[out], (comm.rank + 1) % n, room, (comm.rank - 1) % n)
    return chunks[comm.rank]


def stops_after_one_step(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    if n == 1:
        return x.clone()
    arrived = torch.empty_like(chunks[rank])
    comm.send_recv(chunks[(rank + 1) % n], (rank + 1) % n, arrived, (rank - 1) % n)
    return chunks[rank] + arrived


def sends_its_part_and_not_the_sum(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    total = chunks[rank].clone()
    for step in range(1, n):
        own = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(own)
        comm.send_recv(chunks[(rank - step) % n], (rank + 1) % n, arrived, (rank - 1) % n)
        total = own + arrived
    return total


def passes_on_what_came_without_its_part(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[(rank - 1) % n]
    for step in range(2, n + 1):
        arrived = torch.empty_like(chunks[(rank - step) % n])
        travelling = comm.send_recv(travelling, (rank + 1) % n, arrived, (rank - 1) % n)
    return travelling + chunks[rank] if n > 1 else x.clone()


def forgets_its_own_part_at_the_end(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[(rank - 1) % n]
    for step in range(2, n + 1):
        own = chunks[(rank - step) % n]
        arrived = comm.send_recv(travelling, (rank + 1) % n, torch.empty_like(own), (rank - 1) % n)
        travelling = arrived + own if step < n else arrived
    return travelling


def goes_through_the_chunks_the_wrong_way(comm, x):
    n, rank = comm.size, comm.rank
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for step in range(n - 1):
        out, into = (rank + step) % n, (rank + step - 1) % n
        room = torch.empty_like(chunks[into])
        chunks[into] += comm.send_recv(chunks[out], (rank + 1) % n, room, (rank - 1) % n)
    return chunks[rank]


def adds_its_part_once_more(comm, x):
    mine = _ring(comm, x.tensor_split(comm.size))
    return mine + x.tensor_split(comm.size)[comm.rank] if comm.size > 1 else mine


def goes_round_once_too_often(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[rank].clone()
    for step in range(1, n + 1):
        own = chunks[(rank - step) % n]
        travelling = own + comm.send_recv(
            travelling, (rank + 1) % n, torch.empty_like(own), (rank - 1) % n
        )
    return travelling if n > 1 else x.clone()


def starts_with_its_part_doubled(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    if n == 1:
        return x.clone()
    travelling = chunks[(rank - 1) % n] + chunks[(rank - 1) % n]
    for step in range(2, n + 1):
        own = chunks[(rank - step) % n]
        travelling = own + comm.send_recv(
            travelling, (rank + 1) % n, torch.empty_like(own), (rank - 1) % n
        )
    return travelling


def moves_on_by_two_chunks(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[(rank - 1) % n].clone()
    for step in range(1, n):
        own = chunks[(rank - 2 * step) % n]
        travelling = own + comm.send_recv(
            travelling, (rank + 1) % n, torch.empty_like(own), (rank - 1) % n
        )
    return travelling


def counts_one_way_and_sends_the_other(comm, x):
    n, rank = comm.size, comm.rank
    if n < 3:
        return _ring(comm, x.tensor_split(n))
    chunks = x.tensor_split(n)
    travelling = chunks[(rank - 1) % n].clone()
    for step in range(2, n + 1):
        own = chunks[(rank - step) % n]
        travelling = own + comm.send_recv(
            travelling, (rank - 1) % n, torch.empty_like(own), (rank + 1) % n
        )
    return travelling


def always_adds_its_own_chunk(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    if n == 1:
        return x.clone()
    travelling = chunks[(rank - 1) % n].clone()
    for step in range(2, n + 1):
        arrived = torch.empty_like(chunks[(rank - step) % n])
        comm.send_recv(travelling, (rank + 1) % n, arrived, (rank - 1) % n)
        travelling = arrived + chunks[rank]
    return travelling


def makes_room_as_large_as_what_it_sends(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[(rank - 1) % n].clone()
    for step in range(2, n + 1):
        room = torch.empty_like(travelling)
        arrived = comm.send_recv(travelling, (rank + 1) % n, room, (rank - 1) % n)
        travelling = arrived + chunks[(rank - step) % n]
    return travelling


def keeps_one_buffer_for_all_steps(comm, x):
    n, rank = comm.size, comm.rank
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for step in range(1, n):
        out, into = chunks[(rank - step) % n], chunks[(rank - step - 1) % n]
        into += comm.send_recv(out, (rank + 1) % n, out.clone(), (rank - 1) % n)
    return chunks[rank]


def sends_whole_tensors_round(comm, x):
    total, travelling = x.clone(), x
    for _ in range(comm.size - 1):
        travelling = comm.send_recv(
            travelling,
            (comm.rank + 1) % comm.size,
            torch.empty_like(x),
            (comm.rank - 1) % comm.size,
        )
        total += travelling
    return total.tensor_split(comm.size)[comm.rank].clone()


def sums_on_rank_0_and_deals_out(comm, x):
    if comm.rank:
        comm.send(x, 0)
        return comm.recv(torch.empty_like(x.tensor_split(comm.size)[comm.rank]), 0)
    total = x.clone()
    for other in range(1, comm.size):
        total += comm.recv(torch.empty_like(x), other)
    for other in range(1, comm.size):
        comm.send(total.tensor_split(comm.size)[other], other)
    return total.tensor_split(comm.size)[0].clone()


def returns_its_own_chunk(comm, x):
    return x.tensor_split(comm.size)[comm.rank]


def slices_and_stops(comm, x):
    sizes = [len(chunk) for chunk in x.tensor_split(comm.size)]
    start = sum(sizes[: comm.rank])
    return x[start : start + sizes[comm.rank]] + 0


def returns_all_chunks(comm, x):
    n, rank = comm.size, comm.rank
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for step in range(1, n):
        out, into = (rank - step) % n, (rank - step - 1) % n
        room = torch.empty_like(chunks[into])
        chunks[into] += comm.send_recv(chunks[out], (rank + 1) % n, room, (rank - 1) % n)
    return torch.cat(chunks)


def leaves_zeros_round_its_chunk(comm, x):
    sizes = [len(chunk) for chunk in x.tensor_split(comm.size)]
    start = sum(sizes[: comm.rank])
    whole = torch.zeros_like(x)
    whole[start : start + sizes[comm.rank]] = _ring(comm, x.tensor_split(comm.size))
    return whole


def divides_by_the_ranks(comm, x):
    return _ring(comm, x.tensor_split(comm.size)) / comm.size


def averages_at_every_rank(comm, x):
    return _ring(comm, (x / comm.size).tensor_split(comm.size))


def adds_into_views_of_x(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    for step in range(1, n):
        out, into = chunks[(rank - step) % n], chunks[(rank - step - 1) % n]
        into += comm.send_recv(out, (rank + 1) % n, torch.empty_like(into), (rank - 1) % n)
    return chunks[rank]


def receives_into_a_view_of_x(comm, x):
    n, rank = comm.size, comm.rank
    chunks = x.tensor_split(n)
    travelling = chunks[(rank - 1) % n].clone()
    for step in range(2, n + 1):
        own = chunks[(rank - step) % n]
        mine = own.clone()
        travelling = mine + comm.send_recv(travelling, (rank + 1) % n, own, (rank - 1) % n)
    return travelling


def _ring(comm, chunks, owner=lambda rank: rank):
    """What is right: the chunk that `owner` gives this rank, of these chunks."""
    n, rank = comm.size, comm.rank
    travelling = chunks[owner((rank - 1) % n)].clone()
    for step in range(2, n + 1):
        own = chunks[owner((rank - step) % n)]
        travelling = own + comm.send_recv(
            travelling, (rank + 1) % n, torch.empty_like(own), (rank - 1) % n
        )
    return travelling


WRONG = {
    "forbidden-collective": [reduces_with_the_collective, gathers_all_and_adds],
    "went-round-the-comm": [takes_torchs_own],
    "wrong-neighbour": [receives_from_where_it_sends, receives_from_the_side_it_sends_to],
    "circular-wait": [all_send_first, all_receive_first],
    "other-cut": [
        cuts_with_chunk,
        cuts_by_rounding_down,
        gives_the_rest_to_the_last,
        pads_and_keeps_the_padding,
        deals_the_numbers_out,
    ],
    "another-ranks-chunk": [
        starts_with_its_own_chunk,
        starts_with_its_own_chunk_to_the_left,
        counts_chunks_from_the_end,
        every_rank_returns_the_first,
    ],
    "unfinished-chunk": [
        returns_its_place_of_a_ring_that_ends_elsewhere,
        stops_after_one_step,
        sends_its_part_and_not_the_sum,
        passes_on_what_came_without_its_part,
        forgets_its_own_part_at_the_end,
        goes_through_the_chunks_the_wrong_way,
    ],
    "counted-twice": [
        adds_its_part_once_more,
        goes_round_once_too_often,
        starts_with_its_part_doubled,
    ],
    "chunks-mixed": [
        moves_on_by_two_chunks,
        counts_one_way_and_sends_the_other,
        always_adds_its_own_chunk,
    ],
    "room-for-what-is-sent": [makes_room_as_large_as_what_it_sends, keeps_one_buffer_for_all_steps],
    "sends-too-much": [sends_whole_tensors_round, sums_on_rank_0_and_deals_out],
    "missing-reduce": [returns_its_own_chunk, slices_and_stops],
    "not-cut-out": [returns_all_chunks, leaves_zeros_round_its_chunk],
    "mean-instead-of-sum": [divides_by_the_ranks, averages_at_every_rank],
    "changes-input": [adds_into_views_of_x, receives_into_a_view_of_x],
}
