"""Solutions of one_or_two_shot as a class would hand them in."""


def no_special_cases(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    return (latency_2 - latency_1) / ((n - 1) / bandwidth_1 - 2 * (n - 1) / (n * bandwidth_2))


def subtracts_the_wrong_way(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import math

    gain = 2 * (n - 1) / n / bandwidth_2 - (n - 1) / bandwidth_1
    return math.inf if gain == 0 else (latency_2 - latency_1) / gain


def two_shot_as_a_ring_of_whole_tensors(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import math

    gain = (n - 1) / bandwidth_1 - 2 * (n - 1) / bandwidth_2
    return math.inf if gain <= 0 else max(0, (latency_2 - latency_1) / gain)


def does_not_know_n(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import math

    gain = 1 / bandwidth_1 - 1 / bandwidth_2
    return math.inf if gain <= 0 else max(0, (latency_2 - latency_1) / gain)


def minus_one_for_never(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    gain = (n - 1) / bandwidth_1 - 2 * (n - 1) / n / bandwidth_2
    return -1 if gain <= 0 else max(0, (latency_2 - latency_1) / gain)


def zero_when_it_is_negative(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    gain = (n - 1) / bandwidth_1 - 2 * (n - 1) / n / bandwidth_2
    if gain == 0 or (latency_2 - latency_1) / gain < 0:
        return 0
    return (latency_2 - latency_1) / gain


def divides_the_gain_by_the_latency(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import math

    gain = (n - 1) / bandwidth_1 - 2 * (n - 1) / n / bandwidth_2
    return math.inf if gain <= 0 else max(0, gain / (latency_2 - latency_1))


def bytes_that_are_sent(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import math

    gain = 1 / bandwidth_1 - 2 / n / bandwidth_2
    return math.inf if gain <= 0 else max(0, (latency_2 - latency_1) / gain)


def searches_powers_of_two(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import math

    for exponent in range(40):
        size = 2**exponent
        one = latency_1 + (n - 1) * size / bandwidth_1
        if latency_2 + 2 * (n - 1) / n * size / bandwidth_2 <= one:
            return size if exponent else 0
    return math.inf


def says_both(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import math

    gain = (n - 1) / bandwidth_1 - 2 * (n - 1) / n / bandwidth_2
    return ("never", math.inf) if gain <= 0 else ("from", (latency_2 - latency_1) / gain)


def exactly(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    from fractions import Fraction

    slope_1 = Fraction(n - 1) / Fraction(bandwidth_1)
    slope_2 = Fraction(2 * (n - 1), n) / Fraction(bandwidth_2)
    wait = Fraction(latency_2) - Fraction(latency_1)
    if slope_2 >= slope_1:
        return float("inf") if wait >= 0 else 0
    return float(wait / (slope_1 - slope_2)) if wait > 0 else 0


def by_halving(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import math

    def lead(size):
        two = latency_2 + 2 * (n - 1) / n * size / bandwidth_2
        return latency_1 + (n - 1) * size / bandwidth_1 - two

    if lead(0) >= 0:
        return 0
    if lead(1e15) <= 0:
        return math.inf
    low, high = 0.0, 1e15
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if lead(middle) < 0 else (low, middle)
    return high


def as_two_lines_in_numpy(n, latency_1, bandwidth_1, latency_2, bandwidth_2):
    import numpy as np

    slope = (n - 1) * (1 / bandwidth_1 - 2 / n / bandwidth_2)
    with np.errstate(divide="ignore"):
        meeting = np.float64(latency_2 - latency_1) / slope
    return np.inf if slope <= 0 else np.maximum(meeting, 0.0)


WRONG = [
    no_special_cases,
    subtracts_the_wrong_way,
    two_shot_as_a_ring_of_whole_tensors,
    does_not_know_n,
    minus_one_for_never,
    zero_when_it_is_negative,
    divides_the_gain_by_the_latency,
    bytes_that_are_sent,
    searches_powers_of_two,
    says_both,
]
RIGHT = [exactly, by_halving, as_two_lines_in_numpy]
