"""Solutions of find_the_skipper as a class would hand them in."""


def compares_with_rank_zero_only(calls):
    for rank in range(1, len(calls)):
        for index, (a, b) in enumerate(zip(calls[0], calls[rank], strict=False)):
            if a != b:
                return rank, index
        if len(calls[rank]) < len(calls[0]):
            return rank, len(calls[rank])
    return 0, len(calls[0])


def sees_no_gap_at_the_end(calls):
    lengths = [len(c) for c in calls]
    rank = lengths.index(min(lengths))
    full = calls[lengths.index(max(lengths))]
    for index, (a, b) in enumerate(zip(full, calls[rank], strict=False)):
        if a != b:
            return rank, index


def says_the_last_call_that_went_well(calls):
    lengths = [len(c) for c in calls]
    rank = lengths.index(min(lengths))
    full = calls[lengths.index(max(lengths))]
    for index, call in enumerate(full):
        if index == len(calls[rank]) or calls[rank][index] != call:
            return rank, index - 1


def counts_from_one(calls):
    lengths = [len(c) for c in calls]
    rank = lengths.index(min(lengths))
    full = calls[lengths.index(max(lengths))]
    for index, call in enumerate(full):
        if index == len(calls[rank]) or calls[rank][index] != call:
            return rank, index + 1


def looks_which_call_is_missing(calls):
    lengths = [len(c) for c in calls]
    rank = lengths.index(min(lengths))
    full = calls[lengths.index(max(lengths))]
    for index, call in enumerate(full):
        if call not in calls[rank]:
            return rank, index
    return rank, len(full) - 1


def compares_names_only(calls):
    lengths = [len(c) for c in calls]
    rank = lengths.index(min(lengths))
    full = calls[lengths.index(max(lengths))]
    for index, (name, _) in enumerate(full):
        if index == len(calls[rank]) or calls[rank][index][0] != name:
            return rank, index


def returns_a_list(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    full = calls[rank - 1]
    for index, call in enumerate(full):
        if calls[rank][index : index + 1] != [call]:
            return [rank, index]


def index_and_rank_swapped(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    full = calls[rank - 1]
    for index, call in enumerate(full):
        if calls[rank][index : index + 1] != [call]:
            return index, rank


def takes_calls_off_the_lists(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    full = calls[rank - 1]
    index = 0
    while calls[rank] and calls[rank][0] == full[0]:
        calls[rank].pop(0)
        full.pop(0)
        index += 1
    return rank, index


def runs_off_the_end(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    full = calls[rank - 1]
    index = 0
    while full[index] == calls[rank][index]:
        index += 1
    return rank, index


def blames_the_rank_with_more_calls(calls):
    rank = max(range(len(calls)), key=lambda r: len(calls[r]))
    short = min(calls, key=len)
    for index, call in enumerate(calls[rank]):
        if short[index : index + 1] != [call]:
            return rank, index


def blames_the_second_rank_of_two(calls):
    first = calls[0]
    for index in range(max(map(len, calls))):
        for rank, mine in enumerate(calls):
            if mine[index : index + 1] != first[index : index + 1]:
                return rank, index


def returns_the_call(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    for index, call in enumerate(calls[rank - 1]):
        if calls[rank][index : index + 1] != [call]:
            return rank, call


def by_putting_calls_back(calls):
    for rank, mine in enumerate(calls):
        others = [c for r, c in enumerate(calls) if r != rank]
        for index, call in enumerate(others[0]):
            if all([*mine[:index], call, *mine[index:]] == other for other in others):
                return rank, index
    raise AssertionError("nobody skipped a call")


def from_the_back(calls):
    import numpy as np

    rank = int(np.argmin([len(c) for c in calls]))
    mine, full = calls[rank][::-1], calls[(rank + 1) % len(calls)][::-1]
    same = 0
    while same < len(mine) and mine[same] == full[same]:
        same += 1
    return rank, len(full) - 1 - same


def with_a_filler_and_a_named_tuple(calls):
    from collections import namedtuple
    from itertools import zip_longest

    Found = namedtuple("Found", "rank index")
    shortest = min(calls, key=len)
    longest = max(calls, key=len)
    pairs = zip_longest(longest, shortest)
    return Found(calls.index(shortest), next(i for i, (a, b) in enumerate(pairs) if a != b))


WRONG = [
    compares_with_rank_zero_only,
    sees_no_gap_at_the_end,
    says_the_last_call_that_went_well,
    counts_from_one,
    looks_which_call_is_missing,
    compares_names_only,
    returns_a_list,
    index_and_rank_swapped,
    takes_calls_off_the_lists,
    runs_off_the_end,
    blames_the_rank_with_more_calls,
    blames_the_second_rank_of_two,
    returns_the_call,
]
RIGHT = [by_putting_calls_back, from_the_back, with_a_filler_and_a_named_tuple]
