"""Solutions of mean_of_uneven_parts as a class would hand them in."""


def means_of_means(comm, x):
    return comm.all_reduce(x.mean()) / comm.size


def means_of_means_with_zero_for_an_empty_rank(comm, x):
    mean = x.mean() if len(x) else x.new_zeros(())
    return comm.all_reduce(mean) / comm.size


def means_of_the_ranks_that_have_some(comm, x):
    import torch

    pair = torch.zeros(2, dtype=x.dtype)
    if len(x):
        pair[0], pair[1] = x.mean(), 1
    comm.all_reduce(pair)
    return pair[0] / pair[1]


def one_number_in_brackets(comm, x):
    total = comm.all_reduce(x.sum().reshape(1))
    count = comm.all_reduce(x.new_tensor([len(x)]))
    return total / count


def a_plain_float(comm, x):
    pair = comm.all_reduce(x.new_tensor([x.sum(), len(x)]))
    return pair[0].item() / pair[1].item()


def in_single_precision(comm, x):
    import torch

    pair = comm.all_reduce(torch.tensor([float(x.sum()), float(len(x))]))
    return pair[0] / pair[1]


def assumes_equal_parts(comm, x):
    return comm.all_reduce(x.sum()) / (len(x) * comm.size)


def reduces_a_number(comm, x):
    total = comm.all_reduce(x.sum())
    count = comm.all_reduce(len(x))
    return total / count


def gathers_everything(comm, x):
    return comm.all_gather(x).mean()


def skips_when_it_has_nothing(comm, x):
    if len(x) == 0:
        return x.new_zeros(())
    pair = comm.all_reduce(x.new_tensor([x.sum(), len(x)]))
    return pair[0] / pair[1]


def gathers_sums_and_counts(comm, x):
    sums = comm.all_gather(x.sum().reshape(1))
    counts = comm.all_gather(x.new_tensor([len(x)]))
    return sums.sum() / counts.sum()


def returns_the_sum(comm, x):
    return comm.all_reduce(x.sum())


def asks_for_the_average(comm, x):
    return comm.all_reduce(x.sum() / max(len(x), 1), op="avg")


def weighs_by_its_own_length(comm, x):
    count = comm.all_reduce(x.new_tensor(float(len(x))))
    return x.sum() / count


def integer_count_apart(comm, x):
    import torch

    count = comm.all_reduce(torch.tensor(x.numel()))
    return comm.all_reduce(x.sum()) / count


def share_of_the_total_first(comm, x):
    count = comm.all_reduce(x.new_full((1, 1), x.shape[0]))
    return comm.all_reduce((x / count).sum())


def averages_of_sum_and_count(comm, x):
    import torch

    pair = torch.stack([x.sum(), torch.ones_like(x).sum()]).reshape(2, 1)
    comm.all_reduce(pair, op="avg")
    return torch.div(*pair).squeeze()


def a_view_of_one_number(comm, x):
    import torch

    both = torch.zeros(3, dtype=x.dtype)
    both[1], both[2] = x.numel(), x.sum()
    comm.all_reduce(both)
    return (both[2:] / both[1:2]).view(())


WRONG = [
    means_of_means,
    means_of_means_with_zero_for_an_empty_rank,
    means_of_the_ranks_that_have_some,
    one_number_in_brackets,
    a_plain_float,
    in_single_precision,
    assumes_equal_parts,
    reduces_a_number,
    gathers_everything,
    skips_when_it_has_nothing,
    gathers_sums_and_counts,
    returns_the_sum,
    asks_for_the_average,
    weighs_by_its_own_length,
]
RIGHT = [
    integer_count_apart,
    share_of_the_total_first,
    averages_of_sum_and_count,
    a_view_of_one_number,
]
