"""Wrong solutions of `all_reduce_by_hand`, by the diagnosis that each must get."""

import torch
import torch.distributed as dist


def returns_its_own(comm, x):
    return x


def adds_only_itself(comm, x):
    total = torch.zeros_like(x)
    total += x
    return total


def sends_and_forgets_to_add(comm, x):
    incoming = torch.empty_like(x)
    comm.send_recv(x, (comm.rank + 1) % comm.size, incoming, (comm.rank - 1) % comm.size)
    return x.clone()


def gathers_on_rank_0(comm, x):
    total = x.clone()
    if comm.rank > 0:
        comm.send(x, 0)
        return total
    for source in range(1, comm.size):
        total += comm.recv(torch.empty_like(x), source)
    return total


def root_alone_returns(comm, x):
    if comm.rank != 0:
        comm.send(x, 0)
        return None
    parts = [x] + [comm.recv(torch.empty_like(x), source) for source in range(1, comm.size)]
    return torch.stack(parts).sum(dim=0)


def chain_without_a_way_back(comm, x):
    total = x.clone()
    if comm.rank > 0:
        total += comm.recv(torch.empty_like(x), comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(total, comm.rank + 1)
    return total


def one_step_of_the_ring(comm, x):
    if comm.size == 1:
        return x.clone()
    incoming = torch.empty_like(x)
    comm.send_recv(x, (comm.rank + 1) % comm.size, incoming, (comm.rank - 1) % comm.size)
    return x + incoming


def one_step_the_other_way(comm, x):
    if comm.size == 1:
        return x + 0
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    return x + comm.send_recv(x, left, torch.zeros_like(x), right)


def sends_its_own_every_round(comm, x):
    total = x.clone()
    for _ in range(comm.size - 1):
        incoming = torch.empty_like(x)
        comm.send_recv(x, (comm.rank + 1) % comm.size, incoming, (comm.rank - 1) % comm.size)
        total = total + incoming
    return total


def forgets_to_pass_on(comm, x):
    total, travelling = x.clone(), x
    for _ in range(1, comm.size):
        arrived = torch.empty_like(x)
        comm.send_recv(travelling, comm.rank - 1 if comm.rank else comm.size - 1, arrived,
                       (comm.rank + 1) % comm.size)  # fmt: skip
        total += arrived
    return total


def passes_its_running_sum_on(comm, x):
    total = x.clone()
    for _ in range(comm.size - 1):
        incoming = torch.empty_like(x)
        comm.send_recv(total, (comm.rank + 1) % comm.size, incoming, (comm.rank - 1) % comm.size)
        total = total + incoming
    return total


def passes_its_running_sum_left(comm, x):
    total = x
    for _ in range(comm.size - 1):
        right = (comm.rank + 1) % comm.size
        total = total + comm.send_recv(
            total, (comm.rank - 1) % comm.size, torch.empty_like(x), right
        )
    return total


def goes_round_once_too_often(comm, x):
    total, travelling = x.clone(), x.clone()
    for _ in range(comm.size):
        incoming = torch.empty_like(x)
        comm.send_recv(
            travelling, (comm.rank + 1) % comm.size, incoming, (comm.rank - 1) % comm.size
        )
        total += incoming
        travelling = incoming
    return total


def adds_its_own_to_the_finished_sum(comm, x):
    total = torch.zeros_like(x)
    travelling = x
    for _ in range(comm.size):
        total = total + travelling
        travelling = comm.send_recv(
            travelling, (comm.rank + 1) % comm.size, x.clone(), (comm.rank - 1) % comm.size
        )
    return total + x


def starts_from_zero(comm, x):
    total, travelling = torch.zeros_like(x), x
    for _ in range(comm.size - 1):
        travelling = comm.send_recv(
            travelling,
            (comm.rank + 1) % comm.size,
            torch.empty_like(x),
            (comm.rank - 1) % comm.size,
        )
        total += travelling
    return total


def keeps_what_arrived_last(comm, x):
    if comm.size == 1:
        return torch.zeros_like(x)
    incoming = torch.empty_like(x)
    comm.send_recv(x, (comm.rank + 1) % comm.size, incoming, (comm.rank - 1) % comm.size)
    return incoming


def divides_by_the_ranks(comm, x):
    return _ring(comm, x) / comm.size


def mean_over_stacked_parts(comm, x):
    parts = [x]
    for _ in range(comm.size - 1):
        parts.append(
            comm.send_recv(
                parts[-1],
                (comm.rank + 1) % comm.size,
                torch.empty_like(x),
                (comm.rank - 1) % comm.size,
            )
        )
    return torch.stack(parts).mean(dim=0)


def uses_the_collective(comm, x):
    return comm.all_reduce(x.clone())


def gathers_and_sums(comm, x):
    return comm.all_gather(x[None]).sum(dim=0)


def root_sums_then_broadcasts(comm, x):
    total = x.clone()
    if comm.rank:
        comm.send(x, 0)
    else:
        for source in range(1, comm.size):
            total += comm.recv(torch.empty_like(x), source)
    return comm.broadcast(total, src=0)


def goes_round_the_comm(comm, x):
    total = x.clone()
    if comm.size > 1:
        dist.all_reduce(total)
    return total


def all_send_first(comm, x):
    total, travelling = x.clone(), x.clone()
    for _ in range(comm.size - 1):
        comm.send(travelling, (comm.rank + 1) % comm.size)
        travelling = comm.recv(torch.empty_like(x), (comm.rank - 1) % comm.size)
        total += travelling
    return total


def all_receive_first(comm, x):
    total = x.clone()
    if comm.size > 1:
        total += comm.recv(torch.empty_like(x), (comm.rank - 1) % comm.size)
        comm.send(x, (comm.rank + 1) % comm.size)
    return total


def everyone_sends_to_everyone(comm, x):
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    for other in others:
        comm.send(x, other)
    return x + sum(comm.recv(torch.empty_like(x), other) for other in others)


def adds_into_the_input(comm, x):
    travelling = x.clone()
    for _ in range(comm.size - 1):
        travelling = comm.send_recv(
            travelling,
            (comm.rank + 1) % comm.size,
            torch.empty_like(x),
            (comm.rank - 1) % comm.size,
        )
        x += travelling
    return x


def alias_instead_of_copy(comm, x):
    total = x
    if comm.rank > 0:
        comm.send(x, 0)
        comm.recv(total, 0)
        return total
    for source in range(1, comm.size):
        total.add_(comm.recv(torch.empty_like(x), source))
    for target in range(1, comm.size):
        comm.send(total, target)
    return total


def buffer_of_the_default_dtype(comm, x):
    total = x.clone()
    for _ in range(comm.size - 1):
        incoming = torch.zeros(x.shape)
        comm.send_recv(x, (comm.rank + 1) % comm.size, incoming, (comm.rank - 1) % comm.size)
        total += incoming
    return total


def root_waits_for_nobody_else(comm, x):
    total = x.clone()
    if comm.rank == 0:
        for source in range(1, comm.size):
            total += comm.recv(torch.empty_like(x), source)
    return total


def root_sends_to_itself(comm, x):
    if comm.rank == 0:
        parts = [comm.recv(torch.empty_like(x), source) for source in range(comm.size)]
        return torch.stack(parts).sum(dim=0)
    comm.send(x, 0)
    return comm.recv(torch.empty_like(x), 0)


def prints_instead_of_returning(comm, x):
    print(_ring(comm, x))


def _ring(comm, x):
    total = travelling = x
    for _ in range(comm.size - 1):
        travelling = comm.send_recv(
            travelling,
            (comm.rank + 1) % comm.size,
            torch.empty_like(x),
            (comm.rank - 1) % comm.size,
        )
        total = total + travelling
    return total


WRONG = {
    "missing-reduce": [returns_its_own, adds_only_itself, sends_and_forgets_to_add],
    "only-one-rank": [gathers_on_rank_0, root_alone_returns, chain_without_a_way_back],
    "neighbour-only": [one_step_of_the_ring, one_step_the_other_way],
    "same-part-again": [sends_its_own_every_round, forgets_to_pass_on],
    "counted-twice": [passes_its_running_sum_on, passes_its_running_sum_left],
    "one-round-too-many": [goes_round_once_too_often, adds_its_own_to_the_finished_sum],
    "own-part-missing": [starts_from_zero, keeps_what_arrived_last],
    "mean-instead-of-sum": [divides_by_the_ranks, mean_over_stacked_parts],
    "forbidden-collective": [uses_the_collective, gathers_and_sums, root_sums_then_broadcasts],
    "went-round-the-comm": [goes_round_the_comm],
    "circular-wait": [all_send_first, all_receive_first, everyone_sends_to_everyone],
    "changes-input": [adds_into_the_input, alias_instead_of_copy],
    "collectives-mismatch": [buffer_of_the_default_dtype, root_waits_for_nobody_else],
    "raised": [root_sends_to_itself],
    "returns-nothing": [prints_instead_of_returning],
}
