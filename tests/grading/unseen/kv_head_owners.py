"""Solutions of kv_head_owners as a class would hand them in."""


def blocks_of_kv_heads(num_heads, num_kv_heads, tp):
    n = num_kv_heads // tp
    return [list(range(r * n, (r + 1) * n)) for r in range(tp)]


def at_least_one_from_the_front(num_heads, num_kv_heads, tp):
    n = max(1, num_kv_heads // tp)
    return [list(range(r * n, r * n + n)) for r in range(tp)]


def round_robin(num_heads, num_kv_heads, tp):
    if tp > num_kv_heads:
        return [[r % num_kv_heads] for r in range(tp)]
    n = num_kv_heads // tp
    return [list(range(r * n, r * n + n)) for r in range(tp)]


def every_rank_holds_all(num_heads, num_kv_heads, tp):
    return [list(range(num_kv_heads)) for _ in range(tp)]


def one_entry_for_each_query_head(num_heads, num_kv_heads, tp):
    group, each = num_heads // num_kv_heads, num_heads // tp
    return [[h // group for h in range(r * each, (r + 1) * each)] for r in range(tp)]


def query_heads(num_heads, num_kv_heads, tp):
    each = num_heads // tp
    return [list(range(r * each, (r + 1) * each)) for r in range(tp)]


def sets(num_heads, num_kv_heads, tp):
    group, each = num_heads // num_kv_heads, num_heads // tp
    return [{h // group for h in range(r * each, (r + 1) * each)} for r in range(tp)]


def plain_numbers_where_one_is_held(num_heads, num_kv_heads, tp):
    if tp >= num_kv_heads:
        return [r * num_kv_heads // tp for r in range(tp)]
    n = num_kv_heads // tp
    return [list(range(r * n, r * n + n)) for r in range(tp)]


def ranges(num_heads, num_kv_heads, tp):
    if tp >= num_kv_heads:
        return [range(k := r * num_kv_heads // tp, k + 1) for r in range(tp)]
    n = num_kv_heads // tp
    return [range(r * n, r * n + n) for r in range(tp)]


def owners_of_each_kv_head(num_heads, num_kv_heads, tp):
    group, each = num_heads // num_kv_heads, num_heads // tp
    owners = [[] for _ in range(num_kv_heads)]
    for head in range(num_heads):
        if head // each not in owners[head // group]:
            owners[head // group].append(head // each)
    return owners


def group_is_heads_a_rank(num_heads, num_kv_heads, tp):
    each = num_heads // tp
    return [sorted({h // each for h in range(r * each, (r + 1) * each)}) for r in range(tp)]


def interleaved_groups(num_heads, num_kv_heads, tp):
    each = num_heads // tp
    return [sorted({h % num_kv_heads for h in range(r * each, (r + 1) * each)}) for r in range(tp)]


def only_the_first_owner_keeps_it(num_heads, num_kv_heads, tp):
    group, each = num_heads // num_kv_heads, num_heads // tp
    seen, out = set(), []
    for r in range(tp):
        mine = sorted({h // group for h in range(r * each, (r + 1) * each)} - seen)
        seen |= set(mine)
        out.append(mine)
    return out


def shared_inner_list(num_heads, num_kv_heads, tp):
    group, each = num_heads // num_kv_heads, num_heads // tp
    owners = [[]] * tp
    for head in range(num_heads):
        if head // group not in owners[head // each]:
            owners[head // each].append(head // group)
    return owners


def floats(num_heads, num_kv_heads, tp):
    group, each = num_heads / num_kv_heads, num_heads // tp
    return [sorted({h // group for h in range(r * each, r * each + each)}) for r in range(tp)]


def a_dict(num_heads, num_kv_heads, tp):
    group, each = num_heads // num_kv_heads, num_heads // tp
    return {r: sorted({h // group for h in range(r * each, r * each + each)}) for r in range(tp)}


def first_and_last_query_head(num_heads, num_kv_heads, tp):
    return [
        list(range(r * num_kv_heads // tp, -(-(r + 1) * num_kv_heads // tp))) for r in range(tp)
    ]


def filled_from_the_query_heads_with_torch(num_heads, num_kv_heads, tp):
    import torch

    kv = torch.arange(num_kv_heads).repeat_interleave(num_heads // num_kv_heads)
    return [rank.unique().tolist() for rank in kv.view(tp, -1)]


def asked_of_every_kv_head(num_heads, num_kv_heads, tp):
    def uses(rank, kv):
        return any(
            q * tp // num_heads == rank and q * num_kv_heads // num_heads == kv
            for q in range(num_heads)
        )

    return [[kv for kv in range(num_kv_heads) if uses(rank, kv)] for rank in range(tp)]


WRONG = [
    blocks_of_kv_heads,
    at_least_one_from_the_front,
    round_robin,
    every_rank_holds_all,
    one_entry_for_each_query_head,
    query_heads,
    sets,
    plain_numbers_where_one_is_held,
    ranges,
    owners_of_each_kv_head,
    group_is_heads_a_rank,
    interleaved_groups,
    only_the_first_owner_keeps_it,
    shared_inner_list,
    floats,
    a_dict,
]
RIGHT = [first_and_last_query_head, filled_from_the_query_heads_with_torch, asked_of_every_kv_head]
