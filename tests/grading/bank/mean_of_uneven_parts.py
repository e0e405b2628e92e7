"""Wrong solutions of `global_mean`, by the diagnosis that each must get."""

import torch


def mean_of_its_own(comm, x):
    return x.mean()


def reduces_after_the_answer(comm, x):
    mean = x.sum() / len(x)
    comm.all_reduce(x.sum())
    return mean


def keeps_the_local_pair(comm, x):
    pair = torch.stack((x.sum(), x.new_tensor(x.numel())))
    comm.all_reduce(pair.clone())
    return pair[0] / pair[1]


def averages_the_means(comm, x):
    return comm.all_reduce(x.mean(), op="avg")


def adds_means_and_divides(comm, x):
    mean = x.mean()
    comm.all_reduce(mean)
    return mean / comm.size


def own_mean_over_ranks(comm, x):
    return comm.all_reduce(x.sum() / len(x) / comm.size)


def divides_by_its_own_count(comm, x):
    return comm.all_reduce(x.sum()) / torch.tensor(len(x))


def reduces_only_the_first_of_the_pair(comm, x):
    total, count = x.sum(), x.new_tensor(len(x))
    comm.all_reduce(total)
    return total / count


def reduces_only_the_count(comm, x):
    return x.sum() / comm.all_reduce(torch.tensor(len(x)))


def loses_the_reduced_sum(comm, x):
    comm.all_reduce(x.sum())
    count = comm.all_reduce(x.new_tensor(len(x)))
    return x.sum() / count


def counts_as_if_all_were_equal(comm, x):
    return comm.all_reduce(x.sum()) / (torch.tensor(len(x)) * comm.size)


def expects_equal_parts(comm, x):
    total = comm.all_reduce(x.sum())
    return total / torch.tensor(float(x.numel() * comm.size), dtype=x.dtype)


def counts_at_least_one(comm, x):
    pair = torch.stack((x.sum(), x.new_tensor(max(len(x), 1))))
    comm.all_reduce(pair)
    return pair[0] / pair[1]


def a_zero_in_place_of_nothing(comm, x):
    if x.numel() == 0:
        x = x.new_zeros(1)
    return comm.all_reduce(x.sum()) / comm.all_reduce(torch.tensor(len(x)))


def divides_by_the_ranks(comm, x):
    return comm.all_reduce(x.sum()) / comm.size


def average_of_sums(comm, x):
    return comm.all_reduce(x.sum(), op="avg")


def total_of_all(comm, x):
    return comm.all_reduce(x.sum())


def counts_but_does_not_divide(comm, x):
    total = comm.all_reduce(x.sum())
    comm.all_reduce(torch.tensor(len(x)))
    return total


def averaged_sum_over_summed_count(comm, x):
    return comm.all_reduce(x.sum(), op="avg") / comm.all_reduce(torch.tensor(len(x)))


def divides_once_too_often(comm, x):
    total, count = comm.all_reduce(torch.stack((x.sum(), x.new_tensor(len(x)))))
    return total / comm.size / count


def only_rank_0_divides(comm, x):
    total, count = comm.all_reduce(torch.stack((x.sum(), x.new_tensor(len(x)))))
    return total / count if comm.rank == 0 else total


def rank_0_tells_nobody(comm, x):
    pair = comm.all_reduce(torch.stack((x.sum(), x.new_tensor(len(x)))))
    if comm.rank == 0:
        return pair[0] / pair[1]
    return torch.zeros_like(pair[0])


def gathers_sums_and_counts(comm, x):
    pairs = comm.all_gather(torch.stack((x.sum(), x.new_tensor(len(x))))[None])
    return pairs[:, 0].sum() / pairs[:, 1].sum()


def root_divides_and_broadcasts(comm, x):
    total, count = comm.all_reduce(torch.stack((x.sum(), x.new_tensor(len(x)))))
    return comm.broadcast(total / count)


def weighs_by_a_third_reduce(comm, x):
    count = comm.all_reduce(x.new_tensor(len(x)))
    total = comm.all_reduce(x.sum())
    ranks = comm.all_reduce(x.new_tensor(1))
    return total / count * ranks / comm.size


def one_reduce_for_each_element(comm, x):
    longest = comm.all_reduce(torch.tensor(len(x)), op="max")
    total = x.new_zeros(())
    for i in range(int(longest)):
        total = total + comm.all_reduce(x[i].clone() if i < len(x) else x.new_zeros(()))
    return total / comm.all_reduce(torch.tensor(len(x)))


def reduces_the_numbers_themselves(comm, x):
    return comm.all_reduce(x.clone()).sum() / comm.all_reduce(torch.tensor(len(x)))


def mean_of_the_reduced_numbers(comm, x):
    total = x.clone()
    comm.all_reduce(total)
    return total.mean()


def pair_in_the_default_dtype(comm, x):
    pair = torch.tensor([float(x.sum()), float(len(x))])
    comm.all_reduce(pair)
    return pair[0] / pair[1]


def converts_to_float32(comm, x):
    total, count = comm.all_reduce(torch.stack((x.float().sum(), torch.tensor(float(len(x))))))
    return total / count


def keeps_a_dim(comm, x):
    total, count = x.sum(dim=0, keepdim=True), x.new_tensor([len(x)])
    return comm.all_reduce(total) / comm.all_reduce(count)


def gives_a_python_number(comm, x):
    total, count = comm.all_reduce(torch.stack((x.sum(), x.new_tensor(len(x)))))
    return (total / count).item()


def reduces_a_python_number(comm, x):
    return comm.all_reduce(float(x.sum())) / comm.all_reduce(len(x))


WRONG = {
    "missing-reduce": [mean_of_its_own, reduces_after_the_answer, keeps_the_local_pair],
    "mean-of-means": [averages_the_means, adds_means_and_divides, own_mean_over_ranks],
    "own-count": [divides_by_its_own_count, reduces_only_the_first_of_the_pair],
    "own-sum": [reduces_only_the_count, loses_the_reduced_sum],
    "equal-parts-assumed": [counts_as_if_all_were_equal, expects_equal_parts],
    "empty-part-counted": [counts_at_least_one, a_zero_in_place_of_nothing],
    "divided-by-ranks": [divides_by_the_ranks, average_of_sums],
    "sum-instead-of-mean": [total_of_all, counts_but_does_not_divide],
    "averaged-twice": [averaged_sum_over_summed_count, divides_once_too_often],
    "only-one-rank": [only_rank_0_divides, rank_0_tells_nobody],
    "other-collectives": [gathers_sums_and_counts, root_divides_and_broadcasts],
    "too-many-all-reduces": [weighs_by_a_third_reduce, one_reduce_for_each_element],
    "collectives-mismatch": [reduces_the_numbers_themselves, mean_of_the_reduced_numbers],
    "wrong-dtype": [pair_in_the_default_dtype, converts_to_float32],
    "wrong-shape": [keeps_a_dim],
    "wrong-type": [gives_a_python_number],
    "raised": [reduces_a_python_number],
}
