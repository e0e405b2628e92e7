"""Wrong solutions of `vocab_argmax`, by the diagnosis that each must get."""

import torch


def best_of_its_own(comm, logits, first_id, num_real):
    return _masked(logits, num_real).argmax(dim=1) + first_id


def loses_the_reduced_maximum(comm, logits, first_id, num_real):
    masked = _masked(logits, num_real)
    comm.all_reduce(masked.amax(dim=1), op="max")
    is_top = masked == masked.amax(dim=1, keepdim=True)
    return is_top.int().argmax(dim=1) + first_id


def gathers_but_keeps_its_own(comm, logits, first_id, num_real):
    _, ids = _candidates(logits, first_id, num_real)
    comm.all_gather(ids[None])
    return ids


def column_of_its_own(comm, logits, first_id, num_real):
    return _masked(logits, num_real).argmax(dim=1)


def padding_takes_part(comm, logits, first_id, num_real):
    value, column = logits.max(dim=1)
    values = comm.all_gather(value[None])
    ids = comm.all_gather(column[None] + first_id)
    return ids.gather(0, values.argmax(dim=0)[None]).squeeze(0)


def column_of_its_own_maximum(comm, logits, first_id, num_real):
    if num_real == 0:
        return torch.zeros(len(logits), dtype=torch.int64)
    return logits[:, :num_real].max(dim=1).indices


def padding_set_to_zero(comm, logits, first_id, num_real):
    is_real = torch.arange(logits.shape[1]) < num_real
    value, column = (logits * is_real).max(dim=1)
    return _pick(comm, value, column + first_id)


def padding_only_rank_forgotten(comm, logits, first_id, num_real):
    masked = logits.clone()
    if num_real < logits.shape[1]:
        masked[:, num_real + 1 :] = -torch.inf
    value, column = masked.max(dim=1)
    return _pick(comm, value, column + first_id)


def column_of_the_winner(comm, logits, first_id, num_real):
    value, column = _masked(logits, num_real).max(dim=1)
    return _pick(comm, value, column)


def forgets_the_offset(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    top = comm.all_reduce(value.clone(), op="max")
    mine = torch.where(value == top, ids, torch.iinfo(torch.int64).max)
    winner = comm.all_reduce(mine, op="min")
    return winner % logits.shape[1]


def adds_its_own_offset(comm, logits, first_id, num_real):
    value, column = _masked(logits, num_real).max(dim=1)
    return _pick(comm, value, column) + first_id


def offset_by_rank(comm, logits, first_id, num_real):
    value, column = _masked(logits, num_real).max(dim=1)
    winner = _pick(comm, value, column)
    return winner + comm.rank * logits.shape[1]


def offset_from_num_real(comm, logits, first_id, num_real):
    value, column = _masked(logits, num_real).max(dim=1)
    return _pick(comm, value, column + comm.rank * num_real)


def offset_from_the_owners_count(comm, logits, first_id, num_real):
    value, column = _masked(logits, num_real).max(dim=1)
    values = comm.all_gather(value[None])
    counts = comm.all_gather(torch.tensor([num_real]))
    columns = comm.all_gather(column[None])
    owner = values.argmax(dim=0)
    return columns.gather(0, owner[None]).squeeze(0) + owner * counts[owner]


def highest_of_the_tied_ranks(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    top = comm.all_reduce(value.clone(), op="max")
    return comm.all_reduce(torch.where(value == top, ids, -1), op="max")


def later_rank_wins_a_tie(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    values, all_ids = comm.all_gather(value[None]), comm.all_gather(ids[None])
    best, winner = values[0], all_ids[0]
    for rank in range(1, comm.size):
        is_better = values[rank] >= best
        best = torch.where(is_better, values[rank], best)
        winner = torch.where(is_better, all_ids[rank], winner)
    return winner


def last_of_equal_columns(comm, logits, first_id, num_real):
    masked = _masked(logits, num_real)
    value = masked.amax(dim=1)
    column = logits.shape[1] - 1 - (masked == value[:, None]).int().flip(1).argmax(dim=1)
    return _pick(comm, value, column + first_id)


def highest_id_of_all(comm, logits, first_id, num_real):
    masked = _masked(logits, num_real)
    top = comm.all_reduce(masked.amax(dim=1), op="max")
    ids = torch.where(masked == top[:, None], torch.arange(logits.shape[1]) + first_id, -1)
    return comm.all_reduce(ids.amax(dim=1), op="max")


def adds_the_winning_ids(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    top = comm.all_reduce(value.clone(), op="max")
    return comm.all_reduce(ids * (value == top))


def zeros_from_the_losers(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    top = comm.all_gather(value[None]).amax(dim=0)
    ids[value < top] = 0
    comm.all_reduce(ids)
    return ids


def only_rank_0_decides(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    winner = _pick(comm, value, ids)
    return winner if comm.rank == 0 else torch.zeros_like(winner)


def sends_to_rank_0(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    if comm.rank:
        comm.send(value, 0)
        comm.send(ids, 0)
        return None
    values, all_ids = [value], [ids]
    for source in range(1, comm.size):
        values.append(comm.recv(torch.empty_like(value), source))
        all_ids.append(comm.recv(torch.empty_like(ids), source))
    winner = torch.stack(values).argmax(dim=0)
    return torch.stack(all_ids).gather(0, winner[None]).squeeze(0)


def gathers_all_logits(comm, logits, first_id, num_real):
    return comm.all_gather(_masked(logits, num_real), dim=1).argmax(dim=1)


def gathers_logits_and_counts(comm, logits, first_id, num_real):
    everything = comm.all_gather(logits, dim=1)
    counts = comm.all_gather(torch.tensor([num_real]))
    return everything[:, : int(counts.sum())].argmax(dim=1)


def all_reduces_a_full_row(comm, logits, first_id, num_real):
    full = logits.new_full((len(logits), comm.size * logits.shape[1]), -torch.inf)
    full[:, first_id : first_id + num_real] = logits[:, :num_real]
    return comm.all_reduce(full, op="max").argmax(dim=1)


def takes_the_smallest(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    value = value.masked_fill(torch.isinf(value), torch.inf)
    values, all_ids = comm.all_gather(value[None]), comm.all_gather(ids[None])
    return all_ids.gather(0, values.argmin(dim=0)[None]).squeeze(0)


def compares_with_min(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    value[torch.isinf(value)] = 0
    lowest = comm.all_reduce(value.clone(), op="min")
    return comm.all_reduce(torch.where(value == lowest, ids, 1 << 40), op="min")


def masks_the_input(comm, logits, first_id, num_real):
    logits[:, num_real:] = -torch.inf
    value, column = logits.max(dim=1)
    return _pick(comm, value, column + first_id)


def fills_in_place(comm, logits, first_id, num_real):
    logits.masked_fill_(torch.arange(logits.shape[1]) >= num_real, -torch.inf)
    return _pick(comm, logits.amax(dim=1), logits.argmax(dim=1) + first_id)


def slices_the_padding_off(comm, logits, first_id, num_real):
    value, column = logits[:, :num_real].max(dim=1)
    return _pick(comm, value, column + first_id)


def ids_as_floats(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    pairs = comm.all_gather(torch.stack((value, ids.double()))[None])
    winner = pairs[:, 0].argmax(dim=0)
    return pairs[:, 1].gather(0, winner[None]).squeeze(0)


def keeps_a_dim(comm, logits, first_id, num_real):
    value, ids = _candidates(logits, first_id, num_real)
    values, all_ids = comm.all_gather(value[:, None], dim=1), comm.all_gather(ids[:, None], dim=1)
    return all_ids.gather(1, values.argmax(dim=1, keepdim=True))


def best_of_the_whole_batch(comm, logits, first_id, num_real):
    masked = _masked(logits, num_real)
    value = masked.max().reshape(1)
    ids = masked.argmax().reshape(1) % logits.shape[1] + first_id
    return _pick(comm, value, ids)


def a_list_of_ids(comm, logits, first_id, num_real):
    return _pick(comm, *_candidates(logits, first_id, num_real)).tolist()


def _masked(logits, num_real):
    return logits.masked_fill(torch.arange(logits.shape[1]) >= num_real, -torch.inf)


def _candidates(logits, first_id, num_real):
    value, column = _masked(logits, num_real).max(dim=1)
    return value, column + first_id


def _pick(comm, value, ids):
    values, all_ids = comm.all_gather(value[None]), comm.all_gather(ids[None])
    return all_ids.gather(0, values.argmax(dim=0)[None]).squeeze(0)


WRONG = {
    "own-best-only": [best_of_its_own, loses_the_reduced_maximum, gathers_but_keeps_its_own],
    "own-column": [column_of_its_own, column_of_its_own_maximum],
    "padding-wins": [padding_takes_part, padding_set_to_zero, padding_only_rank_forgotten],
    "local-index": [column_of_the_winner, forgets_the_offset],
    "own-offset": [adds_its_own_offset, offset_by_rank],
    "offset-from-num-real": [offset_from_num_real, offset_from_the_owners_count],
    "tie-to-higher-id": [
        highest_of_the_tied_ranks,
        later_rank_wins_a_tie,
        last_of_equal_columns,
        highest_id_of_all,
    ],
    "tied-ids-added": [adds_the_winning_ids, zeros_from_the_losers],
    "only-one-rank": [only_rank_0_decides, sends_to_rank_0],
    "sends-all-logits": [gathers_all_logits, gathers_logits_and_counts, all_reduces_a_full_row],
    "smallest-logit": [takes_the_smallest, compares_with_min],
    "changes-input": [masks_the_input, fills_in_place],
    "raised": [slices_the_padding_off],
    "wrong-dtype": [ids_as_floats],
    "wrong-shape": [keeps_a_dim, best_of_the_whole_batch],
    "wrong-type": [a_list_of_ids],
}
