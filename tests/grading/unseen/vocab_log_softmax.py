"""Solutions of vocab_log_softmax as a class would hand them in."""


def only_its_own_block(comm, logits, first_id, targets):
    column = (targets - first_id).clamp(0, logits.shape[1] - 1)
    return logits.log_softmax(-1).gather(1, column[:, None]).squeeze(1)


def overflows(comm, logits, first_id, targets):
    import torch

    total = comm.all_reduce(logits.exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1)
    target = comm.all_reduce(torch.where(mine, target, torch.zeros_like(target)))
    return target - total.log()


def each_rank_its_own_maximum(comm, logits, first_id, targets):
    import torch

    top = logits.max(-1).values
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1) - top
    target = comm.all_reduce(torch.where(mine, target, torch.zeros_like(target)))
    return target - total.log()


def probability_first(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    exps = (logits - top[:, None]).exp()
    total = comm.all_reduce(exps.sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    p = exps.gather(1, safe[:, None]).squeeze(1) / total
    return comm.all_reduce(torch.where(mine, p, torch.zeros_like(p))).log()


def sums_the_targets_of_all_ranks(comm, logits, first_id, targets):
    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = (targets - first_id).clamp(0, logits.shape[1] - 1)
    target = comm.all_reduce(logits.gather(1, column[:, None]).squeeze(1) - top)
    return target - total.log()


def answers_on_the_owner_only(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1) - top - total.log()
    return torch.where(mine, target, torch.zeros_like(target))


def gathers_all_logits(comm, logits, first_id, targets):
    whole = comm.all_gather(logits, dim=1)
    return whole.log_softmax(-1).gather(1, targets[:, None]).squeeze(1)


def gathers_padded_logits(comm, logits, first_id, targets):
    import torch

    width = int(comm.all_reduce(torch.tensor(logits.shape[1]), op="max"))
    padded = logits.new_full((len(logits), width), float("-inf"))
    padded[:, : logits.shape[1]] = logits
    total = comm.all_gather(padded, dim=1).logsumexp(-1)
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1)
    return comm.all_reduce(torch.where(mine, target, torch.zeros_like(target))) - total


def forgets_to_add_the_maximum_back(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1)
    target = comm.all_reduce(torch.where(mine, target, torch.zeros_like(target)))
    return target - total.log()


def base_two(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1) - top
    target = comm.all_reduce(torch.where(mine, target, torch.zeros_like(target)))
    return target - total.log2()


def a_loss_not_a_log_probability(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1) - top
    target = comm.all_reduce(torch.where(mine, target, torch.zeros_like(target)))
    return total.log() - target


def one_mean_of_the_batch(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1) - top
    target = comm.all_reduce(torch.where(mine, target, torch.zeros_like(target)))
    return (target - total.log()).mean()


def negative_columns_count_from_the_end(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    target = torch.zeros_like(top)
    for row, column in enumerate((targets - first_id).tolist()):
        if column < logits.shape[1]:
            target[row] = logits[row, column] - top[row]
    return comm.all_reduce(target) - total.log()


def off_by_one_at_the_upper_end(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column <= logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1) - top
    target = comm.all_reduce(torch.where(mine, target, torch.zeros_like(target)))
    return target - total.log()


def shifts_in_place(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    logits -= top[:, None]
    total = comm.all_reduce(logits.exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    safe = column.clamp(0, logits.shape[1] - 1)
    target = logits.gather(1, safe[:, None]).squeeze(1)
    target = comm.all_reduce(torch.where(mine, target, torch.zeros_like(target)))
    return target - total.log()


def indexes_without_a_check(comm, logits, first_id, targets):
    total = comm.all_reduce(logits.exp().sum(-1))
    target = logits.gather(1, (targets - first_id)[:, None]).squeeze(1)
    return target - total.log()


def only_owners_reduce(comm, logits, first_id, targets):
    import torch

    top = comm.all_reduce(logits.max(-1).values, op="max")
    total = comm.all_reduce((logits - top[:, None]).exp().sum(-1))
    column = targets - first_id
    mine = (column >= 0) & (column < logits.shape[1])
    target = torch.zeros_like(top)
    if mine.any():
        target[mine] = (logits - top[:, None])[mine, column[mine]]
        target = comm.all_reduce(target)
    return target - total.log()


def gathers_each_ranks_log_sum(comm, logits, first_id, targets):
    import torch

    column = targets - first_id
    held = (column >= 0) & (column < logits.shape[1])
    target = torch.full_like(logits[:, 0], -torch.inf)
    target[held] = logits[held, column[held]]
    everybody = comm.all_gather(torch.stack([logits.logsumexp(1), target]).unsqueeze(0))
    return everybody[:, 1].amax(0) - everybody[:, 0].logsumexp(0)


def one_hot_without_a_branch(comm, logits, first_id, targets):
    import torch

    ids = first_id + torch.arange(logits.size(1))
    top = comm.all_reduce(logits.amax(-1, keepdim=True), op="max")
    shifted = logits - top
    sums = torch.cat(
        [shifted.exp().sum(1, True), shifted.mul(ids == targets[:, None]).sum(1, True)], 1
    )
    comm.all_reduce(sums)
    return sums[:, 1] - sums[:, 0].log()


def relative_to_the_target(comm, logits, first_id, targets):
    import torch

    target = torch.tensor(
        [
            row[t - first_id] if 0 <= t - first_id < len(row) else 0.0
            for row, t in zip(logits.tolist(), targets.tolist(), strict=True)
        ],
        dtype=logits.dtype,
    )
    comm.all_reduce(target)
    sums = comm.all_gather((logits - target[:, None]).logsumexp(-1, keepdim=True), dim=-1)
    return -sums.logsumexp(-1)


WRONG = [
    only_its_own_block,
    overflows,
    each_rank_its_own_maximum,
    probability_first,
    sums_the_targets_of_all_ranks,
    answers_on_the_owner_only,
    gathers_all_logits,
    gathers_padded_logits,
    forgets_to_add_the_maximum_back,
    base_two,
    a_loss_not_a_log_probability,
    one_mean_of_the_batch,
    negative_columns_count_from_the_end,
    off_by_one_at_the_upper_end,
    shifts_in_place,
    indexes_without_a_check,
    only_owners_reduce,
]
RIGHT = [gathers_each_ranks_log_sum, one_hot_without_a_branch, relative_to_the_target]
