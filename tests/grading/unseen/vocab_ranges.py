"""Solutions of vocab_ranges as a class would hand them in."""


def loses_the_rest(vocab_size, tp):
    n = vocab_size // tp
    return [range(r * n, (r + 1) * n) for r in range(tp)]


def the_last_takes_the_rest(vocab_size, tp):
    n = vocab_size // tp
    return [range(r * n, vocab_size if r == tp - 1 else (r + 1) * n) for r in range(tp)]


def rounds_up(vocab_size, tp):
    n = -(-vocab_size // tp)
    return [range(r * n, (r + 1) * n) for r in range(tp)]


def rounds_up_and_stops_at_the_end(vocab_size, tp):
    import math

    n = math.ceil(vocab_size / tp)
    return [range(min(r * n, vocab_size), min((r + 1) * n, vocab_size)) for r in range(tp)]


def longer_ranges_overlap(vocab_size, tp):
    n, rest = divmod(vocab_size, tp)
    return [range(r * n, (r + 1) * n + (r < rest)) for r in range(tp)]


def longer_ranges_last(vocab_size, tp):
    n, rest = divmod(vocab_size, tp)
    out, first = [], 0
    for r in range(tp):
        length = n + (r >= tp - rest)
        out.append(range(first, first + length))
        first += length
    return out


def spread_by_rounding(vocab_size, tp):
    return [range(r * vocab_size // tp, (r + 1) * vocab_size // tp) for r in range(tp)]


def pairs_of_numbers(vocab_size, tp):
    from itertools import pairwise

    n, rest = divmod(vocab_size, tp)
    firsts = [r * n + min(r, rest) for r in range(tp + 1)]
    return [(a, b) for a, b in pairwise(firsts)]


def lists_of_ids(vocab_size, tp):
    from itertools import pairwise

    n, rest = divmod(vocab_size, tp)
    firsts = [r * n + min(r, rest) for r in range(tp + 1)]
    return [list(range(a, b)) for a, b in pairwise(firsts)]


def ends_one_early(vocab_size, tp):
    from itertools import pairwise

    n, rest = divmod(vocab_size, tp)
    firsts = [r * n + min(r, rest) for r in range(tp + 1)]
    return [range(a, b - 1) for a, b in pairwise(firsts)]


def starts_at_one(vocab_size, tp):
    from itertools import pairwise

    n, rest = divmod(vocab_size, tp)
    firsts = [1 + r * n + min(r, rest) for r in range(tp + 1)]
    return [range(a, b) for a, b in pairwise(firsts)]


def deals_like_cards(vocab_size, tp):
    return [range(r, vocab_size, tp) for r in range(tp)]


def leaves_out_empty_ranges(vocab_size, tp):
    from itertools import pairwise

    n, rest = divmod(vocab_size, tp)
    firsts = [r * n + min(r, rest) for r in range(tp + 1)]
    return [range(a, b) for a, b in pairwise(firsts) if a < b]


def all_of_the_rest_on_rank_zero(vocab_size, tp):
    n, rest = divmod(vocab_size, tp)
    return [range(0, n + rest)] + [range(rest + r * n, rest + (r + 1) * n) for r in range(1, tp)]


def a_generator(vocab_size, tp):
    n, rest = divmod(vocab_size, tp)
    firsts = [r * n + min(r, rest) for r in range(tp + 1)]
    return (range(firsts[r], firsts[r + 1]) for r in range(tp))


def divides_with_floats(vocab_size, tp):
    n = vocab_size / tp
    return [range(r * n, (r + 1) * n) for r in range(tp)]


def all_on_one_range_object(vocab_size, tp):
    return range(vocab_size)


def from_the_lengths(vocab_size, tp):
    from itertools import accumulate, pairwise

    lengths = [len(range(r, vocab_size, tp)) for r in range(tp)]
    return [range(a, b) for a, b in pairwise(accumulate(lengths, initial=0))]


def empty_ranges_from_zero(vocab_size, tp):
    import torch

    blocks = torch.arange(vocab_size).tensor_split(tp)
    return [range(int(b[0]), int(b[-1]) + 1) if len(b) else range(0) for b in blocks]


def from_the_back(vocab_size, tp):
    found, end = [], vocab_size
    for ranks_left in range(tp, 0, -1):
        start = end - end // ranks_left
        found.insert(0, range(start, end, 1))
        end = start
    return found


WRONG = [
    loses_the_rest,
    the_last_takes_the_rest,
    rounds_up,
    rounds_up_and_stops_at_the_end,
    longer_ranges_overlap,
    longer_ranges_last,
    spread_by_rounding,
    pairs_of_numbers,
    lists_of_ids,
    ends_one_early,
    starts_at_one,
    deals_like_cards,
    leaves_out_empty_ranges,
    all_of_the_rest_on_rank_zero,
    a_generator,
    divides_with_floats,
    all_on_one_range_object,
]
RIGHT = [from_the_lengths, empty_ranges_from_zero, from_the_back]
