"""Wrong solutions of `recursive_doubling`, by the diagnosis that each must get."""

import torch
import torch.distributed as dist


def calls_all_reduce(comm, x):
    return comm.all_reduce(x.clone())


def gathers_what_is_left_over(comm, x):
    if comm.size & (comm.size - 1):
        return comm.all_gather(x[None]).sum(dim=0)
    return _folded(comm, x)


def takes_torchs_own(comm, x):
    total = x.clone()
    if comm.size > 1:
        dist.all_reduce(total)
    return total


def both_send_first(comm, x):
    def meet(total, partner):
        comm.send(total, partner)
        return total + comm.recv(torch.empty_like(x), partner)

    return _folded(comm, x, meet)


def both_receive_first(comm, x):
    def meet(total, partner):
        got = comm.recv(torch.empty_like(x), partner)
        comm.send(total, partner)
        return total + got

    return _folded(comm, x, meet)


def pairs_lead_out_of_the_group(comm, x):
    total, distance = x.clone(), 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        total = total + comm.send_recv(total, partner, torch.empty_like(x), partner)
        distance *= 2
    return total


def partner_by_blocks_without_a_bound(comm, x):
    total, distance = x.clone(), 1
    while distance < comm.size:
        is_lower = comm.rank // distance % 2 == 0
        partner = comm.rank + distance if is_lower else comm.rank - distance
        total = total + comm.send_recv(total, partner, torch.empty_like(x), partner)
        distance *= 2
    return total


def a_folded_rank_returns_its_own(comm, x):
    power = _power(comm)
    if comm.rank >= power:
        comm.send(x, comm.rank - power)
        return x.clone()
    total = x.clone()
    if comm.rank + power < comm.size:
        total += comm.recv(torch.empty_like(x), comm.rank + power)
    return _pairs(comm, total, power)


def a_folded_rank_returns_nothing(comm, x):
    power = _power(comm)
    if comm.rank >= power:
        comm.send(x, comm.rank - power)
        return None
    total = x.clone()
    if comm.rank + power < comm.size:
        total += comm.recv(torch.empty_like(x), comm.rank + power)
    return _pairs(comm, total, power)


def a_folded_rank_waits_in_vain(comm, x):
    power = _power(comm)
    if comm.rank >= power:
        comm.send(x, comm.rank - power)
        return comm.recv(torch.empty_like(x), comm.rank - power)
    total = x.clone()
    if comm.rank + power < comm.size:
        total += comm.recv(torch.empty_like(x), comm.rank + power)
    return _pairs(comm, total, power)


def ranks_beyond_stay_away(comm, x):
    power = _power(comm)
    return x.clone() if comm.rank >= power else _pairs(comm, x.clone(), power)


def ranks_without_a_partner_skip_the_round(comm, x):
    total, distance = x.clone(), 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        if partner < comm.size:
            total = total + comm.send_recv(total, partner, torch.empty_like(x), partner)
        distance *= 2
    return total


def ranks_beyond_only_hear_the_result(comm, x):
    power = _power(comm)
    if comm.rank >= power:
        return comm.recv(torch.empty_like(x), comm.rank - power)
    total = _pairs(comm, x.clone(), power)
    if comm.rank + power < comm.size:
        comm.send(total, comm.rank + power)
    return total


def sends_the_guests_part_no_further(comm, x):
    power = _power(comm)
    if comm.rank >= power:
        comm.send(x, comm.rank - power)
        return comm.recv(torch.empty_like(x), comm.rank - power)
    total = _pairs(comm, x.clone(), power)
    if comm.rank + power < comm.size:
        total = total + comm.recv(torch.empty_like(x), comm.rank + power)
        comm.send(total, comm.rank + power)
    return total


def never_talks(comm, x):
    return x.clone()


def throws_away_what_it_hears(comm, x):
    def meet(total, partner):
        comm.send_recv(total, partner, torch.empty_like(x), partner)
        return total

    return _pairs(comm, x.clone(), _power(comm), meet) if comm.rank < _power(comm) else x.clone()


def divides_by_the_ranks(comm, x):
    return _folded(comm, x) / comm.size


def averages_whole_parts(comm, x):
    return _folded(comm, x / comm.size)


def meets_its_neighbour_every_time(comm, x):
    def meet(total, _):
        partner = comm.rank ^ 1
        return total + comm.send_recv(total, partner, torch.empty_like(x), partner)

    return _folded(comm, x, meet)


def meets_its_mirror_every_time(comm, x):
    power = _power(comm)

    def meet(total, _):
        partner = power - 1 - comm.rank
        return total + comm.send_recv(total, partner, torch.empty_like(x), partner)

    return _folded(comm, x, meet)


def forgets_to_double_the_distance(comm, x):
    power = _power(comm)
    rounds, distance = power.bit_length() - 1, max(power // 2, 1)

    def meet(total, _):
        partner = comm.rank ^ distance
        return total + comm.send_recv(total, partner, torch.empty_like(x), partner)

    assert rounds >= 0
    return _folded(comm, x, meet)


def hears_from_ever_further_back(comm, x):
    total, distance = x.clone(), 1
    while distance < comm.size:
        there, back = (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size
        total = total + comm.send_recv(total, there, torch.empty_like(x), back)
        distance *= 2
    return total


def a_folded_rank_stays_in_the_rounds(comm, x):
    power, total = _power(comm), x.clone()
    if comm.rank >= power:
        comm.send(x, comm.rank - power)
    elif comm.rank + power < comm.size:
        total = total + comm.recv(torch.empty_like(x), comm.rank + power)
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        if partner < comm.size:
            total = total + comm.send_recv(total, partner, torch.empty_like(x), partner)
        distance *= 2
    return total


def a_folded_rank_adds_the_result_to_its_own(comm, x):
    power = _power(comm)
    if comm.rank >= power:
        comm.send(x, comm.rank - power)
        return x + comm.recv(torch.empty_like(x), comm.rank - power)
    total = x.clone()
    if comm.rank + power < comm.size:
        total += comm.recv(torch.empty_like(x), comm.rank + power)
    total = _pairs(comm, total, power)
    if comm.rank + power < comm.size:
        comm.send(total, comm.rank + power)
    return total


def sends_its_own_every_round(comm, x):
    brought = []

    def meet(total, partner):
        brought.append(total)
        return total + comm.send_recv(brought[0], partner, torch.empty_like(x), partner)

    return _folded(comm, x, meet)


def collects_first_and_adds_last(comm, x):
    power, heard = _power(comm), []

    def meet(total, partner):
        heard.append(comm.send_recv(total, partner, torch.empty_like(x), partner))
        return total if len(heard) < power.bit_length() - 1 else total + sum(heard)

    return _folded(comm, x, meet)


def one_round_only(comm, x):
    met = []

    def meet(total, partner):
        if met:
            return total
        met.append(partner)
        return total + comm.send_recv(total, partner, torch.empty_like(x), partner)

    return _folded(comm, x, meet)


def only_the_last_round(comm, x):
    power = _power(comm)

    def meet(total, partner):
        if partner != comm.rank ^ (power // 2):
            return total
        return total + comm.send_recv(total, partner, torch.empty_like(x), partner)

    return _folded(comm, x, meet)


def halves_without_a_way_back(comm, x):
    if comm.size & (comm.size - 1):
        return _folded(comm, x)
    total, distance = x.clone(), comm.size // 2
    while distance:
        if comm.rank < distance:
            total += comm.recv(torch.empty_like(x), comm.rank + distance)
        elif comm.rank < 2 * distance:
            comm.send(total, comm.rank - distance)
        distance //= 2
    return total


def the_root_alone_adds(comm, x):
    if comm.size & (comm.size - 1):
        return _folded(comm, x)
    if comm.rank:
        comm.send(x, 0)
        return x.clone()
    return x + sum(comm.recv(torch.empty_like(x), other) for other in range(1, comm.size))


def goes_round_a_ring(comm, x):
    total = travelling = x.clone()
    for _ in range(comm.size - 1):
        travelling = comm.send_recv(
            travelling,
            (comm.rank + 1) % comm.size,
            torch.empty_like(x),
            (comm.rank - 1) % comm.size,
        )
        total = total + travelling
    return total


def makes_a_star_round_rank_0(comm, x):
    if comm.rank:
        comm.send(x, 0)
        return comm.recv(torch.empty_like(x), 0)
    total = x.clone()
    for other in range(1, comm.size):
        total += comm.recv(torch.empty_like(x), other)
    for other in range(1, comm.size):
        comm.send(total, other)
    return total


def climbs_a_tree_and_comes_down(comm, x):
    total, distance, parent = x.clone(), 1, None
    children = []
    while distance < comm.size and parent is None:
        if comm.rank & distance:
            parent = comm.rank - distance
        elif comm.rank + distance < comm.size:
            children.append(comm.rank + distance)
        distance *= 2
    for child in children:
        total += comm.recv(torch.empty_like(x), child)
    if parent is not None:
        comm.send(total, parent)
        comm.recv(total, parent)
    for child in reversed(children):
        comm.send(total, child)
    return total


def adds_into_x(comm, x):
    def meet(total, partner):
        total += comm.send_recv(total, partner, torch.empty_like(x), partner)
        return total

    return _folded(comm, x, meet, copy=False)


def hears_the_result_into_x(comm, x):
    def meet(total, partner):
        mine = total.clone()
        return mine + comm.send_recv(mine, partner, x, partner)

    return _folded(comm, x, meet)


def prints_the_sum(comm, x):
    print(_folded(comm, x))


def _power(comm):
    return 1 << (comm.size.bit_length() - 1)


def _pairs(comm, total, power, meet=None):
    distance = 1
    while distance < power:
        partner = comm.rank ^ distance
        if meet is not None:
            total = meet(total, partner)
        else:
            total = total + comm.send_recv(total, partner, torch.empty_like(total), partner)
        distance *= 2
    return total


def _folded(comm, x, meet=None, copy=True):
    """Right, as long as `meet(total, partner)` adds the partner's sum."""
    power, total = _power(comm), x.clone() if copy else x
    if comm.rank >= power:
        comm.send(x, comm.rank - power)
        return comm.recv(torch.empty_like(x), comm.rank - power)
    has_guest = comm.rank + power < comm.size
    if has_guest:
        total += comm.recv(torch.empty_like(x), comm.rank + power)
    total = _pairs(comm, total, power, meet)
    if has_guest:
        comm.send(total, comm.rank + power)
    return total


WRONG = {
    "forbidden-collective": [calls_all_reduce, gathers_what_is_left_over],
    "went-round-the-comm": [takes_torchs_own],
    "circular-wait": [both_send_first, both_receive_first],
    "no-such-partner": [pairs_lead_out_of_the_group, partner_by_blocks_without_a_bound],
    "result-not-sent-back": [
        a_folded_rank_returns_its_own,
        a_folded_rank_returns_nothing,
        a_folded_rank_waits_in_vain,
    ],
    "rest-not-folded": [
        ranks_beyond_stay_away,
        ranks_without_a_partner_skip_the_round,
        ranks_beyond_only_hear_the_result,
        sends_the_guests_part_no_further,
    ],
    "missing-reduce": [never_talks, throws_away_what_it_hears],
    "mean-instead-of-sum": [divides_by_the_ranks, averages_whole_parts],
    "wrong-partner": [
        meets_its_neighbour_every_time,
        meets_its_mirror_every_time,
        forgets_to_double_the_distance,
    ],
    "counted-twice": [
        hears_from_ever_further_back,
        a_folded_rank_stays_in_the_rounds,
        a_folded_rank_adds_the_result_to_its_own,
    ],
    "sum-not-passed-on": [sends_its_own_every_round, collects_first_and_adds_last],
    "round-missing": [one_round_only, only_the_last_round],
    "only-one-rank": [halves_without_a_way_back, the_root_alone_adds],
    "other-messages": [
        goes_round_a_ring,
        makes_a_star_round_rank_0,
        climbs_a_tree_and_comes_down,
    ],
    "changes-input": [adds_into_x, hears_the_result_into_x],
    "returns-nothing": [prints_the_sum],
}
