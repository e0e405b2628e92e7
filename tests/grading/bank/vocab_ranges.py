"""Wrong solutions of `vocab_ranges`, by the diagnosis that each must get."""

import math

import torch


def floor_of_the_division(vocab_size, tp):
    each = vocab_size // tp
    return [range(rank * each, (rank + 1) * each) for rank in range(tp)]


def starts_by_adding_up(vocab_size, tp):
    ranges, start = [], 0
    for _ in range(tp):
        stop = start + int(vocab_size / tp)
        ranges.append(range(start, stop))
        start = stop
    return ranges


def whole_blocks_only(vocab_size, tp):
    width = (vocab_size - vocab_size % tp) // tp
    starts = [rank * width for rank in range(tp)]
    return [range(start, start + width) for start in starts]


def ceiling_of_the_division(vocab_size, tp):
    each = math.ceil(vocab_size / tp)
    return [range(rank * each, (rank + 1) * each) for rank in range(tp)]


def padded_blocks(vocab_size, tp):
    padded = vocab_size
    while padded % tp:
        padded += 1
    return [range(r * (padded // tp), r * (padded // tp) + padded // tp) for r in range(tp)]


def ceiling_cut_off(vocab_size, tp):
    each = -(-vocab_size // tp)
    return [range(min(r * each, vocab_size), min((r + 1) * each, vocab_size)) for r in range(tp)]


def chunks_of_torch(vocab_size, tp):
    parts = torch.arange(vocab_size).chunk(tp)
    ranges = [range(int(part[0]), int(part[-1]) + 1) for part in parts]
    return ranges + [range(vocab_size, vocab_size)] * (tp - len(ranges))


def rest_to_the_last(vocab_size, tp):
    each = vocab_size // tp
    return [range(r * each, vocab_size if r == tp - 1 else (r + 1) * each) for r in range(tp)]


def last_one_stretched(vocab_size, tp):
    each = vocab_size // tp
    ranges = [range(rank * each, (rank + 1) * each) for rank in range(tp)]
    ranges[-1] = range(ranges[-1].start, vocab_size)
    return ranges


def rounded_edges(vocab_size, tp):
    return [range(r * vocab_size // tp, (r + 1) * vocab_size // tp) for r in range(tp)]


def longer_ones_last(vocab_size, tp):
    each, rest = divmod(vocab_size, tp)
    ranges, start = [], 0
    for rank in range(tp):
        length = each + (1 if rank >= tp - rest else 0)
        ranges.append(range(start, start + length))
        start += length
    return ranges


def stop_taken_as_the_last_id(vocab_size, tp):
    return [range(part.start, part.stop - 1) for part in _right(vocab_size, tp)]


def ends_at_the_last_id(vocab_size, tp):
    ranges, start = [], 0
    for part in _right(vocab_size, tp):
        last = start + len(part) - 1
        ranges.append(range(start, last))
        start = last + 1
    return ranges


def stop_plus_one(vocab_size, tp):
    return [range(part.start, part.stop + 1) for part in _right(vocab_size, tp)]


def shares_the_edges(vocab_size, tp):
    each, rest = divmod(vocab_size, tp)
    starts = [rank * each + min(rank, rest) for rank in range(tp)]
    lengths = [each + (rank < rest) for rank in range(tp)]
    return [range(a, a + n + 1) for a, n in zip(starts, lengths, strict=True)]


def counts_tokens_from_one(vocab_size, tp):
    return [range(part.start + 1, part.stop + 1) for part in _right(vocab_size, tp)]


def starts_at_one(vocab_size, tp):
    ranges, start = [], 1
    for part in _right(vocab_size, tp):
        ranges.append(range(start, start + len(part)))
        start += len(part)
    return ranges


def deals_them_out(vocab_size, tp):
    return [range(rank, vocab_size, tp) for rank in range(tp)]


def modulo_owner(vocab_size, tp):
    whole = range(vocab_size)
    return [whole[rank::tp] for rank in range(tp)]


def pairs_of_numbers(vocab_size, tp):
    return [(part.start, part.stop) for part in _right(vocab_size, tp)]


def lists_of_ids(vocab_size, tp):
    return [list(part) for part in _right(vocab_size, tp)]


def a_tuple_of_ranges(vocab_size, tp):
    return tuple(_right(vocab_size, tp))


def lengths_only(vocab_size, tp):
    return [len(part) for part in _right(vocab_size, tp)]


def yields_them(vocab_size, tp):
    yield from _right(vocab_size, tp)


def leaves_the_last_rank_out(vocab_size, tp):
    return _right(vocab_size, tp)[:-1]


def one_rank_more(vocab_size, tp):
    return [*_right(vocab_size, tp), range(vocab_size, vocab_size)]


def divides_with_a_slash(vocab_size, tp):
    each = vocab_size / tp
    return [range(rank * each, (rank + 1) * each) for rank in range(tp)]


def insists_on_an_even_cut(vocab_size, tp):
    assert vocab_size % tp == 0, "does not divide"
    return _right(vocab_size, tp)


def appends_and_forgets(vocab_size, tp):
    ranges = []
    for part in _right(vocab_size, tp):
        ranges.append(part)


def _right(vocab_size, tp):
    each, rest = divmod(vocab_size, tp)
    starts = [rank * each + min(rank, rest) for rank in range(tp + 1)]
    return [range(starts[rank], starts[rank + 1]) for rank in range(tp)]


WRONG = {
    "loses-the-last-ids": [floor_of_the_division, starts_by_adding_up, whole_blocks_only],
    "past-the-vocabulary": [ceiling_of_the_division, padded_blocks],
    "last-range-short": [ceiling_cut_off, chunks_of_torch],
    "last-rank-takes-the-rest": [rest_to_the_last, last_one_stretched],
    "longer-ranges-not-first": [rounded_edges, longer_ones_last],
    "inclusive-stop": [stop_taken_as_the_last_id, ends_at_the_last_id],
    "overlapping-ranges": [stop_plus_one, shares_the_edges],
    "counted-from-one": [counts_tokens_from_one, starts_at_one],
    "round-robin": [deals_them_out, modulo_owner],
    "wrong-type": [pairs_of_numbers, lists_of_ids, a_tuple_of_ranges, lengths_only, yields_them],
    "wrong-length": [leaves_the_last_rank_out, one_rank_more],
    "raised": [divides_with_a_slash, insists_on_an_even_cut],
    "returns-nothing": [appends_and_forgets],
}
