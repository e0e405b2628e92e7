"""Wrong solutions of `pad_for_int4`, by the diagnosis that each must get."""

import math


def _up(size, unit):
    return -(-size // unit) * unit


def whole_groups_in_all(width, group_size, tp):
    padded = _up(width, group_size)
    return padded, padded - width


def equal_parts_in_all(width, group_size, tp):
    padded = _up(width, tp)
    return padded, padded - width


def least_common_multiple(width, group_size, tp):
    padded = _up(width, math.lcm(group_size, 2))
    return padded, padded - width


def rounds_down(width, group_size, tp):
    unit = group_size * tp
    padded = width // unit * unit
    return padded, padded - width


def rounds_down_and_says_nothing(width, group_size, tp):
    padded = width // (group_size * tp) * group_size * tp
    return padded, 0 if padded < width else padded - width


def adds_what_is_missing_always(width, group_size, tp):
    unit = group_size * tp
    added = unit - width % unit
    return width + added, added


def adds_one_unit_too_many(width, group_size, tp):
    unit = group_size * tp
    if width % unit == 0:
        return width + unit, unit
    return _up(width, unit), _up(width, unit) - width


def one_ranks_width(width, group_size, tp):
    own = _up(-(-width // tp), group_size)
    return own, own - width // tp if own * tp == width else (own * tp - width) // tp


def zeros_of_one_rank(width, group_size, tp):
    padded = _up(width, group_size * tp)
    return padded, (padded - width) // tp


def groups_of_it(width, group_size, tp):
    padded = _up(width, group_size * tp)
    return padded // group_size, (padded - width) // group_size


def zero_groups(width, group_size, tp):
    padded = _up(width, group_size * tp)
    return padded, (padded - width) // group_size


def zeros_first(width, group_size, tp):
    padded = _up(width, group_size * tp)
    return padded - width, padded


def zeros_and_then_the_width(width, group_size, tp):
    added = -width % (group_size * tp)
    return added, width + added


def one_more_unit(width, group_size, tp):
    unit = group_size * tp
    padded = _up(width, unit) + unit if width % unit else width
    return padded, padded - width


def groups_of_each_rank_times_ranks_twice(width, group_size, tp):
    unit = group_size * tp
    padded = _up(_up(width, group_size) * tp, unit) if width % unit else width
    return padded, padded - width


def width_only(width, group_size, tp):
    return _up(width, group_size * tp)


def with_a_slash(width, group_size, tp):
    padded = math.ceil(width / (group_size * tp)) * group_size * tp
    return float(padded), float(padded - width)


WRONG = {
    "one-condition-only": [whole_groups_in_all, equal_parts_in_all, least_common_multiple],
    "channels-cut-off": [rounds_down, rounds_down_and_says_nothing],
    "pads-what-fits": [adds_what_is_missing_always, adds_one_unit_too_many],
    "rounded-twice": [one_more_unit, groups_of_each_rank_times_ranks_twice],
    "of-one-rank": [one_ranks_width, zeros_of_one_rank],
    "counts-groups": [groups_of_it, zero_groups],
    "swapped": [zeros_first, zeros_and_then_the_width],
    "wrong-type": [width_only, with_a_slash],
}
