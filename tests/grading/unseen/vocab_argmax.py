"""Solutions of vocab_argmax as a class would hand them in."""


def only_its_own_block(comm, logits, first_id, num_real):
    return logits.argmax(-1) + first_id


def looks_at_padding(comm, logits, first_id, num_real):
    value, column = logits.max(-1)
    values = comm.all_gather(value.unsqueeze(0))
    ids = comm.all_gather((column + first_id).unsqueeze(0))
    best = values.argmax(0)
    return ids.gather(0, best.unsqueeze(0)).squeeze(0)


def fails_on_a_rank_of_padding(comm, logits, first_id, num_real):
    value, column = logits[:, :num_real].max(-1)
    values = comm.all_gather(value.unsqueeze(0))
    ids = comm.all_gather((column + first_id).unsqueeze(0))
    return ids.gather(0, values.argmax(0, keepdim=True)).squeeze(0)


def zero_for_padding(comm, logits, first_id, num_real):
    seen = logits.clone()
    seen[:, num_real:] = 0
    value, column = seen.max(-1)
    values = comm.all_gather(value.unsqueeze(0))
    ids = comm.all_gather((column + first_id).unsqueeze(0))
    return ids.gather(0, values.argmax(0, keepdim=True)).squeeze(0)


def fills_padding_in_place(comm, logits, first_id, num_real):
    logits[:, num_real:] = float("-inf")
    value, column = logits.max(-1)
    values = comm.all_gather(value.unsqueeze(0))
    ids = comm.all_gather((column + first_id).unsqueeze(0))
    return ids.gather(0, values.argmax(0, keepdim=True)).squeeze(0)


def gathers_all_logits(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    return comm.all_gather(logits.masked_fill(hidden, float("-inf")), dim=1).argmax(-1)


def forgets_the_first_id(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value, column = logits.masked_fill(hidden, float("-inf")).max(-1)
    values = comm.all_gather(value.unsqueeze(0))
    ids = comm.all_gather(column.unsqueeze(0))
    return ids.gather(0, values.argmax(0, keepdim=True)).squeeze(0)


def returns_the_rank(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value = logits.masked_fill(hidden, float("-inf")).max(-1).values
    return comm.all_gather(value.unsqueeze(0)).argmax(0)


def ids_as_floats(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value, column = logits.masked_fill(hidden, float("-inf")).max(-1)
    pairs = comm.all_gather(torch.stack([value, (column + first_id).double()]).unsqueeze(0))
    best = pairs[:, 0].argmax(0, keepdim=True)
    return pairs[:, 1].gather(0, best).squeeze(0)


def the_last_of_equals(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    seen = logits.masked_fill(hidden, float("-inf"))
    value = seen.max(-1).values
    column = logits.shape[1] - 1 - seen.flip(-1).argmax(-1)
    values, ids = comm.all_gather(value[None]), comm.all_gather((column + first_id)[None])
    best = comm.size - 1 - values.flip(0).argmax(0, keepdim=True)
    return ids.gather(0, best).squeeze(0)


def keeps_a_dimension(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value, column = logits.masked_fill(hidden, float("-inf")).max(-1)
    values, ids = comm.all_gather(value[None]), comm.all_gather((column + first_id)[None])
    return ids.gather(0, values.argmax(0, keepdim=True))


def adds_up_the_winners(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value, column = logits.masked_fill(hidden, float("-inf")).max(-1)
    best = comm.all_reduce(value.clone(), op="max")
    mine = torch.where(value == best, column + first_id, torch.zeros_like(column))
    return comm.all_reduce(mine)


def the_highest_id_of_equals_between_ranks(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value, column = logits.masked_fill(hidden, float("-inf")).max(-1)
    best = comm.all_reduce(value.clone(), op="max")
    mine = torch.where(value == best, column + first_id, torch.full_like(column, -1))
    return comm.all_reduce(mine, op="max")


def id_from_rank_times_width(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value, column = logits.masked_fill(hidden, float("-inf")).max(-1)
    values = comm.all_gather(value[None])
    columns = comm.all_gather(column[None])
    best = values.argmax(0, keepdim=True)
    return (best * (num_real or 1) + columns.gather(0, best)).squeeze(0)


def skips_with_padding_only(comm, logits, first_id, num_real):
    import torch

    if num_real == 0:
        return torch.zeros(len(logits), dtype=torch.int64)
    value, column = logits[:, :num_real].max(-1)
    values, ids = comm.all_gather(value[None]), comm.all_gather((column + first_id)[None])
    return ids.gather(0, values.argmax(0, keepdim=True)).squeeze(0)


def a_python_list(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value, column = logits.masked_fill(hidden, float("-inf")).max(-1)
    values, ids = comm.all_gather(value[None]), comm.all_gather((column + first_id)[None])
    return ids.gather(0, values.argmax(0, keepdim=True)).squeeze(0).tolist()


def one_best_of_the_batch(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    seen = logits.masked_fill(hidden, float("-inf"))
    values = comm.all_gather(seen.max().reshape(1))
    ids = comm.all_gather((seen.argmax() + first_id).reshape(1))
    return ids[values.argmax()].expand(len(logits))


def max_then_lowest_id(comm, logits, first_id, num_real):
    import torch

    real = torch.arange(logits.shape[1]) < num_real
    best = torch.where(real, logits, -torch.inf).amax(-1)
    comm.all_reduce(best, op="max")
    ids = (first_id + torch.arange(logits.shape[1])).expand_as(logits)
    hit = real & (logits == best[:, None])
    lowest = torch.where(hit, ids, torch.iinfo(torch.int64).max).amin(-1)
    return comm.all_reduce(lowest, op="min")


def row_by_row_in_python(comm, logits, first_id, num_real):
    import torch

    candidates = []
    for row in logits.tolist():
        real = row[:num_real]
        best = max(real, default=float("-inf"))
        candidates.append([best, first_id + real.index(best) if real else 2.0**40])
    everybody = comm.all_gather(torch.tensor([candidates], dtype=torch.float64)).tolist()
    rows = list(zip(*everybody, strict=True))
    return torch.tensor([int(min(row, key=lambda c: (-c[0], c[1]))[1]) for row in rows])


def the_winner_tells(comm, logits, first_id, num_real):
    import torch

    rows = logits.new_full((len(logits), 1), -torch.inf)
    value, column = torch.cat([rows, logits[:, :num_real]], 1).max(1)
    winner = comm.all_gather(value.unsqueeze(1), dim=1).argmax(1)
    mine = torch.where(winner == comm.rank, first_id + column - 1, 0)
    return comm.all_reduce(mine)


def only_winners_answer(comm, logits, first_id, num_real):
    import torch

    hidden = torch.arange(logits.shape[1]) >= num_real
    value, column = logits.masked_fill(hidden, float("-inf")).max(-1)
    best = comm.all_gather(value[None]).argmax(0)
    ids = torch.where(best == comm.rank, column + first_id, 0)
    return comm.all_reduce(ids) if (best == comm.rank).any() else ids


def answers_with_views(comm, logits, first_id, num_real):
    import torch

    ids = []
    for row in logits:
        real = row[:num_real]
        best = real.max() if num_real else torch.tensor(float("-inf"), dtype=row.dtype)
        column = int(real.argmax()) if num_real else 0
        both = torch.stack([best, torch.tensor(float(first_id + column), dtype=row.dtype)])
        candidates = comm.all_gather(both.unsqueeze(0))
        ids.append(candidates[candidates[:, 0].argmax(), 1].long())
    if len(ids) == 1:
        return ids[0].expand(1)
    return torch.stack(ids)


WRONG = [
    only_its_own_block,
    looks_at_padding,
    fails_on_a_rank_of_padding,
    zero_for_padding,
    fills_padding_in_place,
    gathers_all_logits,
    forgets_the_first_id,
    returns_the_rank,
    ids_as_floats,
    the_last_of_equals,
    keeps_a_dimension,
    adds_up_the_winners,
    the_highest_id_of_equals_between_ranks,
    id_from_rank_times_width,
    skips_with_padding_only,
    a_python_list,
    one_best_of_the_batch,
    only_winners_answer,
]
RIGHT = [max_then_lowest_id, row_by_row_in_python, the_winner_tells, answers_with_views]
