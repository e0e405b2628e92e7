"""Wrong solutions of `one_or_two_shot`, by the diagnosis that each must get."""

import math


def turned_round(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    if one == two:
        return math.inf
    return (latency_1 - latency_2) / (one - two)


def turned_round_and_kept_above_zero(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    if one <= two:
        return math.inf
    return max(0, (latency_2 - latency_1) / (two - one))


def sizes_without_a_sign(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    if one <= two:
        return math.inf
    crossing = (latency_1 - latency_2) / (one - two)
    return 0 if crossing > 0 else crossing


def returns_where_they_meet(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    return (latency_2 - latency_1) / (one - two)


def knows_no_way_out_but_parallel(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    return math.inf if one == two else (latency_2 - latency_1) / (one - two)


def solves_it_with_fractions(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    gap = latency_2 - latency_1
    over = n * bandwidth_1 * bandwidth_2 / (n - 1)
    return gap * over / (n * bandwidth_2 - 2 * bandwidth_1)


def never_becomes_zero(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    if one <= two:
        return 0.0
    return max(0.0, (latency_2 - latency_1) / (one - two))


def cut_off_at_zero(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    return max((latency_2 - latency_1) / (one - two), 0) if one != two else math.inf


def negative_is_never(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    if one == two or (latency_2 - latency_1) / (one - two) <= 0:
        return math.inf
    return (latency_2 - latency_1) / (one - two)


def never_when_it_starts_sooner(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    if latency_2 <= latency_1 or one <= two:
        return float("inf")
    return (latency_2 - latency_1) / (one - two)


def one_shot_sends_one_tensor(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2 - latency_1, 1 / bandwidth_1, 2 * (n - 1) / n / bandwidth_2)


def one_shot_sends_a_ring_part(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    share = (n - 1) / n
    return _crossing(latency_2 - latency_1, share / bandwidth_1, 2 * share / bandwidth_2)


def sends_to_itself_in_one_shot(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2 - latency_1, n / bandwidth_1, 2 * (n - 1) / n / bandwidth_2)


def forgets_the_ring_factor(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2 - latency_1, (n - 1) / bandwidth_1, 2 / bandwidth_2)


def n_everywhere(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2 - latency_1, n / bandwidth_1, 2 / bandwidth_2)


def only_the_first_shot(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2 - latency_1, (n - 1) / bandwidth_1, (n - 1) / n / bandwidth_2)


def two_shot_as_a_reduce_scatter(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    saved = (n - 1) * (1 / bandwidth_1 - 1 / (n * bandwidth_2))
    return max(0.0, (latency_2 - latency_1) / saved) if saved > 0 else math.inf


def whole_tensors_in_both_shots(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2 - latency_1, (n - 1) / bandwidth_1, 2 * (n - 1) / bandwidth_2)


def two_shot_is_one_shot_twice(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    saved = (n - 1) / bandwidth_1 - (n - 1) / bandwidth_2 - (n - 1) / bandwidth_2
    return max(0.0, (latency_2 - latency_1) / saved) if saved > 0 else math.inf


def bandwidths_alone(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2 - latency_1, 1 / bandwidth_1, 1 / bandwidth_2)


def once_and_twice(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2 - latency_1, 1 / bandwidth_1, 2 / bandwidth_2)


def takes_the_other_bandwidth(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_2, bandwidth_1)
    return _crossing(latency_2 - latency_1, one, two)


def unpacks_them_in_another_order(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    bandwidth_1, bandwidth_2 = bandwidth_2, bandwidth_1
    saved = (n - 1) / bandwidth_1 - 2 * (n - 1) / n / bandwidth_2
    return max(0.0, (latency_2 - latency_1) / saved) if saved > 0 else math.inf


def adds_the_latencies(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_1 + latency_2, *_per_byte(n, bandwidth_1, bandwidth_2))


def all_latency_must_be_won_back(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    saved = (n - 1) / bandwidth_1 - 2 * (n - 1) / n / bandwidth_2
    return math.inf if saved <= 0 else sum((latency_1, latency_2)) / saved


def forgets_one_shots_latency(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_2, *_per_byte(n, bandwidth_1, bandwidth_2))


def forgets_two_shots_latency(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return _crossing(latency_1, *_per_byte(n, bandwidth_1, bandwidth_2))


def bytes_of_one_shot(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    return (n - 1) * _crossing(latency_2 - latency_1, one, two)


def bytes_of_two_shot(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    return 2 * (n - 1) / n * _crossing(latency_2 - latency_1, one, two)


def none_for_never(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    return None if one <= two else max(0.0, (latency_2 - latency_1) / (one - two))


def text_for_never(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    return "never" if one <= two else max(0.0, (latency_2 - latency_1) / (one - two))


def rounded_to_kilobytes(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    crossing = _crossing(latency_2 - latency_1, *_per_byte(n, bandwidth_1, bandwidth_2))
    return crossing if crossing in (0, math.inf) else 1000 * round(crossing / 1000)


def times_at_one_megabyte(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    one, two = _per_byte(n, bandwidth_1, bandwidth_2)
    return latency_1 + one * 1e6, latency_2 + two * 1e6


def _per_byte(n, bandwidth_1, bandwidth_2):
    return (n - 1) / bandwidth_1, 2 * (n - 1) / n / bandwidth_2


def _crossing(latency, one, two):
    return math.inf if one <= two else max(0.0, latency / (one - two))


WRONG = {
    "swapped-terms": [turned_round, turned_round_and_kept_above_zero, sizes_without_a_sign],
    "meeting-point-unchecked": [
        returns_where_they_meet,
        knows_no_way_out_but_parallel,
        solves_it_with_fractions,
    ],
    "zero-for-never": [never_becomes_zero, cut_off_at_zero],
    "never-for-always": [negative_is_never, never_when_it_starts_sooner],
    "one-shot-sends-once": [one_shot_sends_one_tensor, one_shot_sends_a_ring_part],
    "own-part-sent": [sends_to_itself_in_one_shot, forgets_the_ring_factor, n_everywhere],
    "one-of-two-shots": [only_the_first_shot, two_shot_as_a_reduce_scatter],
    "two-shot-sends-whole-tensors": [whole_tensors_in_both_shots, two_shot_is_one_shot_twice],
    "n-forgotten": [bandwidths_alone, once_and_twice],
    "bandwidths-swapped": [takes_the_other_bandwidth, unpacks_them_in_another_order],
    "latencies-added": [adds_the_latencies, all_latency_must_be_won_back],
    "one-latency-only": [forgets_one_shots_latency, forgets_two_shots_latency],
    "wire-for-payload": [bytes_of_one_shot, bytes_of_two_shot],
    "returns-nothing": [none_for_never],
    "wrong-type": [text_for_never, times_at_one_megabyte],
    "values-differ": [rounded_to_kilobytes],
}
