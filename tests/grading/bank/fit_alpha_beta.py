"""Wrong solutions of `fit_alpha_beta`, by the diagnosis that each must get."""

import numpy as np
import torch


def beta_first(points):
    alpha, beta = _right(points)
    return beta, alpha


def slope_before_latency(points):
    rows = [(2 * (n - 1) / n * size / t, 2 * (n - 1) / t) for n, size, t in points]
    matrix = torch.tensor(rows, dtype=torch.float64)
    per_byte, alpha = torch.linalg.lstsq(matrix, _ones(points)).solution.flatten().tolist()
    return 1 / per_byte, alpha


def time_for_a_byte(points):
    alpha, beta = _right(points)
    return alpha, 1 / beta


def second_unknown_as_it_comes(points):
    rows = torch.tensor([_ring(n, size) for n, size, _ in points], dtype=torch.float64)
    times = torch.tensor([t for _, _, t in points], dtype=torch.float64)
    alpha, per_byte = torch.linalg.lstsq(rows / times[:, None], _ones(points)).solution[:, 0]
    return float(alpha), float(per_byte)


def seconds_and_bytes_per_second(points):
    alpha, beta = _right(points)
    return alpha / 1e6, beta * 1e6


def gigabytes_per_second(points):
    alpha, beta = _right(points)
    return alpha, beta / 1000


def smallest_message_is_latency(points):
    n, _, fastest = min(points, key=lambda point: point[1])
    alpha = fastest / (2 * (n - 1))
    n, size, slowest = max(points, key=lambda point: point[1])
    return alpha, 2 * (n - 1) / n * size / (slowest - 2 * (n - 1) * alpha)


def latency_from_the_first_and_bandwidth_from_the_last(points):
    by_size = sorted(points, key=lambda point: (point[1], point[2]))
    n, _, t = by_size[0]
    rates = [2 * (n - 1) / n * size / t for n, size, t in by_size[-3:]]
    return t / (n - 1) / 2, sum(rates) / len(rates)


def plain_least_squares(points):
    rows = torch.tensor([_ring(n, size) for n, size, _ in points], dtype=torch.float64)
    times = torch.tensor([[t] for _, _, t in points], dtype=torch.float64)
    alpha, per_byte = torch.linalg.lstsq(rows, times).solution.flatten().tolist()
    return alpha, 1 / per_byte


def plain_least_squares_in_numpy(points):
    rows = np.array([[2 * (n - 1), 2 * (n - 1) / n * size] for n, size, _ in points])
    (alpha, per_byte), *_ = np.linalg.lstsq(rows, np.array([t for *_, t in points]), rcond=None)
    return float(alpha), float(1 / per_byte)


def plain_line_through_payload(points):
    sizes, times = np.array([point[1] for point in points]), np.array([p[2] for p in points])
    slope, intercept = np.polyfit(sizes, times, 1)
    return float(intercept), float(1 / slope)


def fits_logarithms(points):
    times = np.array([t for *_, t in points])
    rows = np.array([_ring(n, size) for n, size, _ in points])
    guess = np.array([_right(points)[0], 1 / _right(points)[1]])
    for _ in range(100):
        model = rows @ guess
        step = np.linalg.lstsq(rows / model[:, None], np.log(times / model), rcond=None)[0]
        guess = guess + step
    return float(guess[0]), float(1 / guess[1])


def fits_logarithms_by_descent(points):
    times = torch.tensor([t for *_, t in points], dtype=torch.float64)
    rows = torch.tensor([_ring(n, size) for n, size, _ in points], dtype=torch.float64)
    alpha, beta = _right(points)
    logs = torch.tensor([alpha, 1 / beta], dtype=torch.float64).log().requires_grad_()
    optimizer = torch.optim.LBFGS([logs], max_iter=40, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        error = ((rows @ logs.exp()).log() - times.log()).square().sum()
        error.backward()
        return error

    optimizer.step(loss)
    alpha, per_byte = logs.exp().tolist()
    return alpha, 1 / per_byte


def divides_by_the_model(points):
    times = np.array([t for *_, t in points])
    rows = np.array([_ring(n, size) for n, size, _ in points])
    guess = np.array([_right(points)[0], 1 / _right(points)[1]])
    for _ in range(100):
        model = (rows @ guess)[:, None]
        guess = np.linalg.lstsq(rows / model, times / model[:, 0], rcond=None)[0]
    return float(guess[0]), float(1 / guess[1])


def latency_of_the_whole(points):
    return _fit(points, lambda n: 1, lambda n: 2 * (n - 1) / n)


def intercept_for_alpha(points):
    rows = np.array([[1 / t, 2 * (n - 1) / n * size / t] for n, size, t in points])
    found = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    return float(found[0]), float(1 / found[1])


def line_through_payload(points):
    return _fit(points, lambda n: 1, lambda n: 1)


def weighted_polyfit(points):
    sizes, times = np.array([point[1] for point in points]), np.array([p[2] for p in points])
    slope, intercept = np.polyfit(sizes, times, 1, w=1 / times)
    return float(intercept), float(1 / slope)


def steps_of_one_half(points):
    return _fit(points, lambda n: n - 1, lambda n: 2 * (n - 1) / n)


def as_many_steps_as_ranks(points):
    return _fit(points, lambda n: n, lambda n: 2 * (n - 1) / n)


def one_step_too_many_in_each_half(points):
    return _fit(points, lambda n: 2 * n, lambda n: 2 * (n - 1) / n)


def bandwidth_of_the_payload(points):
    return _fit(points, lambda n: 2 * (n - 1), lambda n: 1)


def right_alpha_and_payload_bandwidth(points):
    rows = torch.tensor([(2 * (n - 1) / t, size / t) for n, size, t in points], dtype=torch.float64)
    alpha, per_byte = (torch.linalg.pinv(rows) @ _ones(points)).flatten().tolist()
    return alpha, 1 / per_byte


def sends_every_part_twice(points):
    return _fit(points, lambda n: 2 * (n - 1), lambda n: 2)


def large_ring_factor(points):
    rows = np.array([[2 * (n - 1) / t, 2 * size / t] for n, size, t in points])
    found = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    return float(found[0]), float(1 / found[1])


def bytes_of_one_half(points):
    return _fit(points, lambda n: 2 * (n - 1), lambda n: (n - 1) / n)


def a_reduce_scatter_only(points):
    return _fit(points, lambda n: n - 1, lambda n: (n - 1) / n)


def whole_tensor_in_each_step(points):
    return _fit(points, lambda n: 2 * (n - 1), lambda n: 2 * (n - 1))


def bytes_of_all_ranks(points):
    rows = [(2 * (n - 1) / t, n * 2 * (n - 1) / n * size / t) for n, size, t in points]
    matrix = torch.tensor(rows, dtype=torch.float64)
    alpha, per_byte = torch.linalg.lstsq(matrix, _ones(points)).solution.flatten().tolist()
    return alpha, 1 / per_byte


def a_tensor(points):
    return torch.tensor(_right(points), dtype=torch.float64)


def a_list(points):
    return list(_right(points))


def tensors_in_a_tuple(points):
    return tuple(torch.tensor(_right(points)))


def sorts_them(points):
    points.sort()
    return _right(points)


def drops_the_slowest(points):
    points.remove(max(points, key=lambda point: point[2] / point[1]))
    return _right(points)


def takes_them_apart_wrongly(points):
    sizes, times = np.array(points)
    return np.polyfit(sizes, times, 1)


def unknown_attributes(points):
    return sum(point.seconds for point in points) / len(points), 1.0


def prints_them(points):
    print(_right(points))


def power_law(points):
    sizes, times = np.array([point[1] for point in points]), np.array([p[2] for p in points])
    slope, intercept = np.polyfit(np.log(sizes), np.log(times), 1)
    return float(np.exp(intercept)), float(1 / slope)


def mean_of_rates(points):
    rates = [2 * (n - 1) / n * size / t for n, size, t in points]
    return _right(points)[0], sum(rates) / len(rates)


def _ring(n, size):
    return 2 * (n - 1), 2 * (n - 1) / n * size


def _ones(points):
    return torch.ones(len(points), 1, dtype=torch.float64)


def _fit(points, steps, factor):
    rows = [(steps(n) / t, factor(n) * size / t) for n, size, t in points]
    matrix = torch.tensor(rows, dtype=torch.float64)
    alpha, per_byte = torch.linalg.lstsq(matrix, _ones(points)).solution.flatten().tolist()
    return alpha, 1 / per_byte


def _right(points):
    return _fit(points, lambda n: 2 * (n - 1), lambda n: 2 * (n - 1) / n)


WRONG = {
    "swapped": [beta_first, slope_before_latency],
    "slope-for-bandwidth": [time_for_a_byte, second_unknown_as_it_comes],
    "other-units": [seconds_and_bytes_per_second, gigabytes_per_second],
    "smallest-is-latency": [
        smallest_message_is_latency,
        latency_from_the_first_and_bandwidth_from_the_last,
    ],
    "absolute-errors": [
        plain_least_squares,
        plain_least_squares_in_numpy,
        plain_line_through_payload,
    ],
    "follows-the-outlier": [fits_logarithms, fits_logarithms_by_descent, divides_by_the_model],
    "alpha-per-collective": [latency_of_the_whole, intercept_for_alpha],
    "line-through-payload": [line_through_payload, weighted_polyfit],
    "other-step-count": [
        steps_of_one_half,
        as_many_steps_as_ranks,
        one_step_too_many_in_each_half,
    ],
    "payload-for-wire": [bandwidth_of_the_payload, right_alpha_and_payload_bandwidth],
    "own-part-sent": [sends_every_part_twice, large_ring_factor],
    "half-a-ring": [bytes_of_one_half, a_reduce_scatter_only],
    "whole-tensors": [whole_tensor_in_each_step, bytes_of_all_ranks],
    "wrong-type": [a_tensor, a_list, tensors_in_a_tuple],
    "changes-input": [sorts_them, drops_the_slowest],
    "raised": [takes_them_apart_wrongly, unknown_attributes],
    "returns-nothing": [prints_them],
    "values-differ": [power_law, mean_of_rates],
}
