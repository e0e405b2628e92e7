"""Wrong solutions of `vocab_log_softmax`, by the diagnosis that each must get."""

import torch
from torch.nn import functional as F


def softmax_of_its_part(comm, logits, first_id, targets):
    column, is_mine = _columns(logits, first_id, targets)
    local = F.log_softmax(logits, dim=1).gather(1, column[:, None]).squeeze(1)
    return comm.all_reduce(local * is_mine)


def nothing_but_the_target_reduced(comm, logits, first_id, targets):
    column, is_mine = _columns(logits, first_id, targets)
    top = logits.amax(dim=1)
    sums = (logits - top[:, None]).exp().sum(dim=1)
    at_target = logits.gather(1, column[:, None]).squeeze(1)
    return comm.all_reduce(torch.where(is_mine, at_target - top - sums.log(), 0.0))


def sum_stays_here(comm, logits, first_id, targets):
    top = comm.all_reduce(logits.amax(dim=1), op="max")
    shifted = logits - top[:, None]
    at_target = _shared_target(comm, shifted, first_id, targets)
    return at_target - shifted.exp().sum(dim=1).log()


def drops_the_reduced_sum(comm, logits, first_id, targets):
    top = comm.all_reduce(logits.amax(dim=1), op="max")
    exps = (logits - top[:, None]).exp().sum(dim=1)
    comm.all_reduce(exps.clone())
    return _shared_target(comm, logits, first_id, targets) - top - exps.log()


def local_logsumexp(comm, logits, first_id, targets):
    return _shared_target(comm, logits, first_id, targets) - logits.logsumexp(dim=1)


def own_maximum(comm, logits, first_id, targets):
    shifted = logits - logits.amax(dim=1, keepdim=True)
    total = comm.all_reduce(shifted.exp().sum(dim=1))
    return _shared_target(comm, shifted, first_id, targets) - total.log()


def own_maximum_taken_off_at_the_end(comm, logits, first_id, targets):
    top = logits.amax(dim=1)
    total = comm.all_reduce((logits - top[:, None]).exp().sum(dim=1))
    return _shared_target(comm, logits, first_id, targets) - (top + total.log())


def clamps_foreign_targets(comm, logits, first_id, targets):
    column = (targets - first_id).clamp(0, logits.shape[1] - 1)
    at_target = comm.all_reduce(logits.gather(1, column[:, None]).squeeze(1))
    return at_target - _log_total(comm, logits)


def reads_column_0_for_foreign(comm, logits, first_id, targets):
    top, total = _top_and_total(comm, logits)
    column, _ = _columns(logits, first_id, targets)
    shifted = logits - top[:, None]
    at_target = comm.all_reduce(shifted.gather(1, column[:, None]).squeeze(1))
    return at_target - total.log()


def wraps_foreign_targets(comm, logits, first_id, targets):
    column = (targets - first_id) % logits.shape[1]
    at_target = comm.all_reduce(logits[torch.arange(len(logits)), column])
    return at_target - _log_total(comm, logits)


def adds_log_sum_exps(comm, logits, first_id, targets):
    total = comm.all_reduce(logits.logsumexp(dim=1))
    return _shared_target(comm, logits, first_id, targets) - total


def logarithm_before_the_reduce(comm, logits, first_id, targets):
    top = logits.amax(dim=1)
    log_sum = top + (logits - top[:, None]).exp().sum(dim=1).log()
    pair = torch.stack((log_sum, _local_target(logits, first_id, targets)))
    total, at_target = comm.all_reduce(pair)
    return at_target - total


def largest_log_sum_exp(comm, logits, first_id, targets):
    largest = comm.all_reduce(logits.logsumexp(dim=1), op="max")
    return _shared_target(comm, logits, first_id, targets) - largest


def max_of_the_sums(comm, logits, first_id, targets):
    top = comm.all_reduce(logits.amax(dim=1), op="max")
    sums = comm.all_reduce((logits - top[:, None]).exp().sum(dim=1), op="max")
    return _shared_target(comm, logits, first_id, targets) - top - sums.log()


def averages_the_sums(comm, logits, first_id, targets):
    top = comm.all_reduce(logits.amax(dim=1), op="max")
    sums = comm.all_reduce((logits - top[:, None]).exp().sum(dim=1), op="avg")
    return _shared_target(comm, logits, first_id, targets) - top - sums.log()


def means_of_gathered_sums(comm, logits, first_id, targets):
    top = comm.all_reduce(logits.amax(dim=1), op="max")
    sums = comm.all_gather((logits - top[:, None]).exp().sum(dim=1)[None]).mean(dim=0)
    return _shared_target(comm, logits, first_id, targets) - top - torch.log(sums)


def forgets_to_shift_the_target(comm, logits, first_id, targets):
    _, total = _top_and_total(comm, logits)
    return _shared_target(comm, logits, first_id, targets) - total.log()


def shifts_the_target_twice(comm, logits, first_id, targets):
    top, total = _top_and_total(comm, logits)
    at_target = _shared_target(comm, logits - top[:, None], first_id, targets)
    return at_target - top - total.log()


def exp_without_a_shift(comm, logits, first_id, targets):
    total = comm.all_reduce(logits.exp().sum(dim=1))
    return _shared_target(comm, logits, first_id, targets) - total.log()


def plain_formula(comm, logits, first_id, targets):
    pair = torch.stack((torch.exp(logits).sum(dim=1), _local_target(logits, first_id, targets)))
    comm.all_reduce(pair)
    return pair[1] - torch.log(pair[0])


def smallest_of_the_maxima(comm, logits, first_id, targets):
    shifted = logits - comm.all_reduce(logits.amax(dim=1), op="min")[:, None]
    total = comm.all_reduce(shifted.exp().sum(dim=1))
    return _shared_target(comm, shifted, first_id, targets) - total.log()


def adds_the_maxima(comm, logits, first_id, targets):
    top = comm.all_reduce(logits.amax(dim=1))
    total = comm.all_reduce((logits - top[:, None]).exp().sum(dim=1))
    return _shared_target(comm, logits, first_id, targets) - top - total.log()


def default_reduction_of_the_maxima(comm, logits, first_id, targets):
    top = logits.max(dim=1).values
    comm.all_reduce(top)
    shifted = logits - top.unsqueeze(1)
    total = comm.all_reduce(shifted.exp().sum(dim=1))
    return _shared_target(comm, shifted, first_id, targets) - total.log()


def probability_then_logarithm(comm, logits, first_id, targets):
    top, total = _top_and_total(comm, logits)
    weight = (_shared_target(comm, logits, first_id, targets) - top).exp()
    return (weight / total).log()


def log_of_softmax(comm, logits, first_id, targets):
    top, total = _top_and_total(comm, logits)
    probabilities = (logits - top[:, None]).exp() / total[:, None]
    return _shared_target(comm, probabilities, first_id, targets).log()


def the_loss(comm, logits, first_id, targets):
    return _log_total(comm, logits) - _shared_target(comm, logits, first_id, targets)


def cross_entropy(comm, logits, first_id, targets):
    top, total = _top_and_total(comm, logits)
    return -(_shared_target(comm, logits - top[:, None], first_id, targets) - total.log())


def the_probability(comm, logits, first_id, targets):
    top, total = _top_and_total(comm, logits)
    return (_shared_target(comm, logits, first_id, targets) - top).exp() / total


def exponentiates_at_the_end(comm, logits, first_id, targets):
    return (_shared_target(comm, logits, first_id, targets) - _log_total(comm, logits)).exp()


def target_only_where_it_lies(comm, logits, first_id, targets):
    return _local_target(logits, first_id, targets) - _log_total(comm, logits)


def target_of_the_shifted_row(comm, logits, first_id, targets):
    top, total = _top_and_total(comm, logits)
    return _local_target(logits - top[:, None], first_id, targets) - total.log()


def nan_where_it_is_not(comm, logits, first_id, targets):
    _, is_mine = _columns(logits, first_id, targets)
    answer = _local_target(logits, first_id, targets) - _log_total(comm, logits)
    return answer.masked_fill(~is_mine, torch.nan)


def rank_0_alone(comm, logits, first_id, targets):
    answer = _shared_target(comm, logits, first_id, targets) - _log_total(comm, logits)
    return answer if comm.rank == 0 else torch.zeros_like(answer)


def last_rank_alone(comm, logits, first_id, targets):
    answer = _shared_target(comm, logits, first_id, targets) - _log_total(comm, logits)
    return answer if comm.rank == comm.size - 1 else None


def gathers_the_exponentials(comm, logits, first_id, targets):
    top = comm.all_reduce(logits.amax(dim=1), op="max")
    wide = F.pad((logits - top[:, None]).exp(), (0, 50 - logits.shape[1]))
    total = comm.all_gather(wide, dim=1).sum(dim=1)
    return _shared_target(comm, logits, first_id, targets) - top - total.log()


def all_reduces_the_whole_row(comm, logits, first_id, targets):
    whole = logits.new_full((len(logits), 64), -torch.inf)
    whole[:, first_id : first_id + logits.shape[1]] = logits
    comm.all_reduce(whole, op="max")
    return whole.log_softmax(dim=1).gather(1, targets[:, None]).squeeze(1)


def subtracts_in_place(comm, logits, first_id, targets):
    logits -= comm.all_reduce(logits.amax(dim=1), op="max")[:, None]
    total = comm.all_reduce(logits.exp().sum(dim=1))
    return _shared_target(comm, logits, first_id, targets) - total.log()


def shifts_the_targets(comm, logits, first_id, targets):
    log_total = _log_total(comm, logits)
    targets -= first_id
    is_mine = (targets >= 0) & (targets < logits.shape[1])
    column = targets.masked_fill(~is_mine, 0)
    return comm.all_reduce(logits.gather(1, column[:, None]).squeeze(1) * is_mine) - log_total


def global_ids_as_columns(comm, logits, first_id, targets):
    log_total = _log_total(comm, logits)
    return comm.all_reduce(logits.gather(1, targets[:, None]).squeeze(1)) - log_total


def one_number_for_the_batch(comm, logits, first_id, targets):
    answer = _shared_target(comm, logits, first_id, targets) - _log_total(comm, logits)
    return answer.mean()


def keeps_a_dim(comm, logits, first_id, targets):
    answer = _shared_target(comm, logits, first_id, targets) - _log_total(comm, logits)
    return answer[:, None]


def works_in_float32(comm, logits, first_id, targets):
    return _shared_target(comm, logits.float(), first_id, targets) - _log_total(
        comm, logits.float()
    )


def gathers_uneven_logits(comm, logits, first_id, targets):
    everything = comm.all_gather(logits, dim=1)
    return everything.log_softmax(dim=1).gather(1, targets[:, None]).squeeze(1)


def only_the_owner_reduces(comm, logits, first_id, targets):
    log_total = _log_total(comm, logits)
    _, is_mine = _columns(logits, first_id, targets)
    at_target = _local_target(logits, first_id, targets)
    if is_mine.any() and comm.rank == comm.size - 1:
        comm.all_reduce(at_target)
    return at_target - log_total


def _columns(logits, first_id, targets):
    column = targets - first_id
    is_mine = (column >= 0) & (column < logits.shape[1])
    return column.masked_fill(~is_mine, 0), is_mine


def _local_target(logits, first_id, targets):
    column, is_mine = _columns(logits, first_id, targets)
    return torch.where(is_mine, logits.gather(1, column[:, None]).squeeze(1), 0.0)


def _shared_target(comm, logits, first_id, targets):
    return comm.all_reduce(_local_target(logits, first_id, targets))


def _top_and_total(comm, logits):
    top = comm.all_reduce(logits.amax(dim=1), op="max")
    return top, comm.all_reduce((logits - top[:, None]).exp().sum(dim=1))


def _log_total(comm, logits):
    top, total = _top_and_total(comm, logits)
    return top + total.log()


WRONG = {
    "softmax-within-the-rank": [softmax_of_its_part, nothing_but_the_target_reduced],
    "sum-not-reduced": [sum_stays_here, drops_the_reduced_sum, local_logsumexp],
    "local-max-for-global": [own_maximum, own_maximum_taken_off_at_the_end],
    "foreign-targets-added": [
        clamps_foreign_targets,
        reads_column_0_for_foreign,
        wraps_foreign_targets,
    ],
    "log-sums-added": [adds_log_sum_exps, logarithm_before_the_reduce],
    "largest-part-for-sum": [largest_log_sum_exp, max_of_the_sums],
    "mean-instead-of-sum": [averages_the_sums, means_of_gathered_sums],
    "shift-on-one-side-only": [forgets_to_shift_the_target, shifts_the_target_twice],
    "exp-overflows": [exp_without_a_shift, plain_formula, smallest_of_the_maxima],
    "maxima-added": [adds_the_maxima, default_reduction_of_the_maxima],
    "log-of-rounded-probability": [probability_then_logarithm, log_of_softmax],
    "loss-instead-of-log-probability": [the_loss, cross_entropy],
    "probability-instead-of-logarithm": [the_probability, exponentiates_at_the_end],
    "target-not-shared": [
        target_only_where_it_lies,
        target_of_the_shifted_row,
        nan_where_it_is_not,
    ],
    "only-one-rank": [rank_0_alone, last_rank_alone],
    "sends-all-logits": [gathers_the_exponentials, all_reduces_the_whole_row],
    "changes-input": [subtracts_in_place, shifts_the_targets],
    "raised": [global_ids_as_columns],
    "wrong-shape": [one_number_for_the_batch, keeps_a_dim],
    "wrong-dtype": [works_in_float32],
    "collectives-mismatch": [gathers_uneven_logits, only_the_owner_reduces],
}
