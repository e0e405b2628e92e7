"""Wrong owners of KV heads, each under the diagnosis it must get."""


def right(num_heads, num_kv_heads, tp):
    """The right owners, for wrong solutions that go wrong in one case only."""
    if tp > num_kv_heads:
        return [[rank * num_kv_heads // tp] for rank in range(tp)]
    each = num_kv_heads // tp
    return [list(range(rank * each, (rank + 1) * each)) for rank in range(tp)]


def dealt_out_once(num_heads, num_kv_heads, tp):
    if tp > num_kv_heads:
        return [[rank] if rank < num_kv_heads else [] for rank in range(tp)]
    return right(num_heads, num_kv_heads, tp)


def longer_parts_first(num_heads, num_kv_heads, tp):
    each, longer = divmod(num_kv_heads, tp)
    owners, start = [], 0
    for rank in range(tp):
        stop = start + each + (rank < longer)
        owners.append(list(range(start, stop)))
        start = stop
    return owners


def divided_to_nothing(num_heads, num_kv_heads, tp):
    each = num_kv_heads // tp
    return [list(range(rank * each, (rank + 1) * each)) for rank in range(tp)]


def remainder_of_the_rank(num_heads, num_kv_heads, tp):
    if tp > num_kv_heads:
        return [[rank % num_kv_heads] for rank in range(tp)]
    return right(num_heads, num_kv_heads, tp)


def dealt_like_cards(num_heads, num_kv_heads, tp):
    owners = [[] for _ in range(tp)]
    for index in range(max(tp, num_kv_heads)):
        owners[index % tp].append(index % num_kv_heads)
    return owners


def every_nth_head(num_heads, num_kv_heads, tp):
    if tp > num_kv_heads:
        return right(num_heads, num_kv_heads, tp)
    return [list(range(rank, num_kv_heads, tp)) for rank in range(tp)]


def owner_formula_for_all(num_heads, num_kv_heads, tp):
    return [[rank * num_kv_heads // tp] for rank in range(tp)]


def first_query_heads_owner(num_heads, num_kv_heads, tp):
    group = num_heads // num_kv_heads
    queries = num_heads // tp
    return [[rank * queries // group] for rank in range(tp)]


def head_of_the_same_number(num_heads, num_kv_heads, tp):
    if tp > num_kv_heads:
        return right(num_heads, num_kv_heads, tp)
    return [[rank] for rank in range(tp)]


def all_heads(num_heads, num_kv_heads, tp):
    return [list(range(num_kv_heads)) for _ in range(tp)]


def all_heads_when_they_do_not_go_round(num_heads, num_kv_heads, tp):
    if num_kv_heads % tp:
        return [list(range(num_kv_heads))] * tp
    return right(num_heads, num_kv_heads, tp)


def query_heads(num_heads, num_kv_heads, tp):
    each = num_heads // tp
    return [list(range(rank * each, (rank + 1) * each)) for rank in range(tp)]


def query_heads_in_a_loop(num_heads, num_kv_heads, tp):
    owners = [[] for _ in range(tp)]
    for head in range(num_heads):
        owners[head * tp // num_heads].append(head)
    return owners


def one_entry_per_query_head(num_heads, num_kv_heads, tp):
    group, each = num_heads // num_kv_heads, num_heads // tp
    return [[(rank * each + q) // group for q in range(each)] for rank in range(tp)]


def one_entry_per_query_head_in_a_loop(num_heads, num_kv_heads, tp):
    owners = [[] for _ in range(tp)]
    for head in range(num_heads):
        owners[head * tp // num_heads].append(head * num_kv_heads // num_heads)
    return owners


def groups_by_remainder(num_heads, num_kv_heads, tp):
    each = num_heads // tp
    return [
        sorted({q % num_kv_heads for q in range(rank * each, (rank + 1) * each)})
        for rank in range(tp)
    ]


def groups_by_remainder_in_a_loop(num_heads, num_kv_heads, tp):
    owners = [[] for _ in range(tp)]
    for head in range(num_heads):
        mine = owners[head // (num_heads // tp)]
        if head % num_kv_heads not in mine:
            mine.append(head % num_kv_heads)
    return [sorted(mine) for mine in owners]


def neighbours_by_group_size(num_heads, num_kv_heads, tp):
    group = num_heads // num_kv_heads
    if tp > num_kv_heads:
        return [[rank // group] for rank in range(tp)]
    return right(num_heads, num_kv_heads, tp)


def neighbours_by_group_size_in_a_loop(num_heads, num_kv_heads, tp):
    if tp <= num_kv_heads:
        return right(num_heads, num_kv_heads, tp)
    owners = []
    for head in range(num_kv_heads):
        owners += [[head]] * (num_heads // num_kv_heads)
    return owners[:tp]


def ranks_of_each_head(num_heads, num_kv_heads, tp):
    owners = right(num_heads, num_kv_heads, tp)
    return [[rank for rank in range(tp) if h in owners[rank]] for h in range(num_kv_heads)]


def ranks_of_each_head_by_division(num_heads, num_kv_heads, tp):
    replicas = max(1, tp // num_kv_heads)
    first = [h * tp // num_kv_heads for h in range(num_kv_heads)]
    return [list(range(start, start + replicas)) for start in first]


def first_head_as_a_number(num_heads, num_kv_heads, tp):
    return [rank * num_kv_heads // tp for rank in range(tp)]


def number_of_each_rank(num_heads, num_kv_heads, tp):
    return [owned[0] for owned in right(num_heads, num_kv_heads, tp)]


def ranges(num_heads, num_kv_heads, tp):
    owners = right(num_heads, num_kv_heads, tp)
    return [range(owned[0], owned[-1] + 1) for owned in owners]


def dict_by_rank(num_heads, num_kv_heads, tp):
    return dict(enumerate(right(num_heads, num_kv_heads, tp)))


def copy_on_the_first_rank_alone(num_heads, num_kv_heads, tp):
    return [
        [head for head in range(num_kv_heads) if head * tp // num_kv_heads == rank]
        if tp > num_kv_heads
        else right(num_heads, num_kv_heads, tp)[rank]
        for rank in range(tp)
    ]


def last_head_for_the_rest(num_heads, num_kv_heads, tp):
    if tp > num_kv_heads:
        return [[min(rank, num_kv_heads - 1)] for rank in range(tp)]
    return right(num_heads, num_kv_heads, tp)


def padded_with_the_last_head(num_heads, num_kv_heads, tp):
    owners = right(num_heads, num_kv_heads, min(tp, num_kv_heads))
    return owners + [owners[-1]] * (tp - len(owners))


def at_least_one_each(num_heads, num_kv_heads, tp):
    each = max(1, num_kv_heads // tp)
    return [list(range(rank * each, (rank + 1) * each)) for rank in range(tp)]


def head_of_the_ranks_own_number(num_heads, num_kv_heads, tp):
    if tp > num_kv_heads:
        return [[rank] for rank in range(tp)]
    return right(num_heads, num_kv_heads, tp)


WRONG = {
    "not-replicated": [
        dealt_out_once,
        longer_parts_first,
        divided_to_nothing,
        copy_on_the_first_rank_alone,
    ],
    "last-head-for-the-rest": [last_head_for_the_rest, padded_with_the_last_head],
    "no-such-head": [at_least_one_each, head_of_the_ranks_own_number],
    "round-robin": [remainder_of_the_rank, dealt_like_cards, every_nth_head],
    "one-head-per-rank": [
        owner_formula_for_all,
        first_query_heads_owner,
        head_of_the_same_number,
    ],
    "all-heads-on-every-rank": [all_heads, all_heads_when_they_do_not_go_round],
    "query-heads": [query_heads, query_heads_in_a_loop],
    "repeated-per-query-head": [one_entry_per_query_head, one_entry_per_query_head_in_a_loop],
    "interleaved-groups": [groups_by_remainder, groups_by_remainder_in_a_loop],
    "group-size-for-replicas": [neighbours_by_group_size, neighbours_by_group_size_in_a_loop],
    "ranks-per-head": [ranks_of_each_head, ranks_of_each_head_by_division],
    "not-lists": [first_head_as_a_number, number_of_each_rank],
    "wrong-type": [ranges, dict_by_rank],
}
