"""Solutions of pad_for_int4 as a class would hand them in."""


def next_multiple_of_the_group(width, group_size, tp):
    while width % group_size:
        width += 1
    return width, 0


def nearest_multiple(width, group_size, tp):
    unit = group_size * tp
    padded = round(width / unit) * unit
    return padded, abs(padded - width)


def adds_a_group_to_each_rank(width, group_size, tp):
    return width + group_size * tp, group_size * tp


def returns_a_list(width, group_size, tp):
    unit = group_size * tp
    return [width + -width % unit, -width % unit]


def by_counting_up(width, group_size, tp):
    padded = width
    while padded % tp or padded // tp % group_size:
        padded += 1
    return padded, padded - width


def groups_dealt_out(width, group_size, tp):
    groups = (width + group_size - 1) // group_size
    each, left = divmod(groups, tp)
    padded = (each + bool(left)) * tp * group_size
    return padded, padded - width


WRONG = [
    next_multiple_of_the_group,
    nearest_multiple,
    adds_a_group_to_each_rank,
    returns_a_list,
]
RIGHT = [by_counting_up, groups_dealt_out]
