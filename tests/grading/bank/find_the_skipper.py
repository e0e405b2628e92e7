"""Wrong solutions of `find_skipper`, by the diagnosis that each must get."""

from itertools import zip_longest


def trusts_rank_0(calls):
    for rank in range(1, len(calls)):
        for index, (ours, theirs) in enumerate(zip_longest(calls[0], calls[rank])):
            if ours != theirs:
                return rank, index


def names_the_longest(calls):
    longest = max(range(len(calls)), key=lambda rank: len(calls[rank]))
    short = min(calls, key=len)
    for index, call in enumerate(calls[longest]):
        if index == len(short) or short[index] != call:
            return longest, index


def blames_the_last_rank(calls):
    rank, index = _right(calls)
    return (len(calls) - 1 if rank != len(calls) - 1 else 0), index


def counts_from_one(calls):
    rank, index = _right(calls)
    return rank, index + 1


def enumerates_from_one(calls):
    lengths = [len(mine) for mine in calls]
    rank = lengths.index(min(lengths))
    other = calls[rank - 1]
    for position, call in enumerate(other, start=1):
        if calls[rank][position - 1 : position] != [call]:
            return rank, position


def index_first(calls):
    rank, index = _right(calls)
    return index, rank


def loops_index_outside(calls):
    whole = max(calls, key=len)
    for index, call in enumerate(whole):
        for rank, mine in enumerate(calls):
            if index >= len(mine) or mine[index] != call:
                return index, rank


def compares_names_only(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    whole = max(calls, key=len)
    for index, (name, _shape) in enumerate(whole):
        if index == len(calls[rank]) or calls[rank][index][0] != name:
            return rank, index


def zips_the_names(calls):
    rank = [len(mine) for mine in calls].index(min(map(len, calls)))
    names = [[op for op, shape in mine] for mine in calls]
    pairs = zip_longest(names[rank], max(names, key=len))
    return rank, next(i for i, (ours, theirs) in enumerate(pairs) if ours != theirs)


def finds_the_call_by_value(calls):
    rank, index = _right(calls)
    whole = max(calls, key=len)
    return rank, whole.index(whole[index])


def removes_what_is_there(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    whole = list(max(calls, key=len))
    missing = next(call for call in whole if whole.count(call) > calls[rank].count(call))
    return rank, whole.index(missing)


def searches_from_the_end(calls):
    rank, index = _right(calls)
    whole = max(calls, key=len)
    return rank, len(whole) - 1 - whole[::-1].index(whole[index])


def end_of_the_short_list(calls):
    lengths = [len(mine) for mine in calls]
    return lengths.index(min(lengths)), min(lengths)


def last_index_of_the_longest(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    return rank, max(map(len, calls)) - 1


def zip_ends_with_the_short_list(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    for index, (ours, theirs) in enumerate(zip(calls[rank], max(calls, key=len))):  # noqa: B905
        if ours != theirs:
            return rank, index


def looks_only_inside_the_short_list(calls):
    short = min(calls, key=len)
    for index in range(len(short)):
        if short[index] != max(calls, key=len)[index]:
            return calls.index(short), index
    return None


def runs_past_the_short_list(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    for index, call in enumerate(max(calls, key=len)):
        if calls[rank][index] != call:
            return rank, index


def pops_the_lists_empty(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    whole, short, index = max(calls, key=len), calls[rank], 0
    while short and whole[0] == short[0]:
        whole.pop(0)
        short.pop(0)
        index += 1
    return rank, index


def sorts_by_length(calls):
    answer = _right(calls)
    calls.sort(key=len)
    return answer


def gives_a_list(calls):
    return list(_right(calls))


def gives_the_rank_only(calls):
    return _right(calls)[0]


def gives_the_call_too(calls):
    rank, index = _right(calls)
    return rank, index, max(calls, key=len)[index]


def finds_what_nobody_lacks(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    missing = set(max(calls, key=len)) - set(calls[rank])
    return rank, max(calls, key=len).index(missing.pop())


def _right(calls):
    rank = min(range(len(calls)), key=lambda r: len(calls[r]))
    whole, short = max(calls, key=len), min(calls, key=len)
    return rank, next(i for i, call in enumerate(whole) if short[i : i + 1] != [call])


WRONG = {
    "blames-another-rank": [trusts_rank_0, names_the_longest, blames_the_last_rank],
    "counted-from-one": [counts_from_one, enumerates_from_one],
    "swapped": [index_first, loops_index_outside],
    "compares-names-only": [compares_names_only, zips_the_names],
    "another-occurrence": [
        finds_the_call_by_value,
        removes_what_is_there,
        searches_from_the_end,
    ],
    "end-of-the-list": [end_of_the_short_list, last_index_of_the_longest],
    "last-call-unseen": [zip_ends_with_the_short_list, looks_only_inside_the_short_list],
    "changes-input": [pops_the_lists_empty, sorts_by_length],
    "wrong-type": [gives_a_list, gives_the_rank_only],
    "wrong-length": [gives_the_call_too],
    "raised": [runs_past_the_short_list, finds_what_nobody_lacks],
}
