"""Solutions of where_tp_stops_paying as a class would hand them in."""


def percent(weight_seconds, num_layers, all_reduce_seconds, least):
    times = {d: weight_seconds / d + 2 * num_layers * s for d, s in all_reduce_seconds.items()}
    parts = {d: 100 * (times[d] - times[2 * d]) / times[d] for d in times if 2 * d in times}
    for degree, part in parts.items():
        if part < 100 * least:
            return degree, parts
    return max(times), parts


def knows_the_last_degree_too(weight_seconds, num_layers, all_reduce_seconds, least):
    times = {d: weight_seconds / d + 2 * num_layers * s for d, s in all_reduce_seconds.items()}
    parts = {d: 1 - times.get(2 * d, times[d]) / times[d] for d in times}
    return min(d for d, part in parts.items() if part < least), parts


def always_from_one_gpu(weight_seconds, num_layers, all_reduce_seconds, least):
    degree, parts = 1, {}
    step = weight_seconds
    for d, s in all_reduce_seconds.items():
        if d == 1:
            continue
        new = weight_seconds / d + 2 * num_layers * s
        parts[d // 2] = 1 - new / step
        if parts[d // 2] >= least:
            degree = d
        step = new
    return degree, parts


def turned_sign(weight_seconds, num_layers, all_reduce_seconds, least):
    times = {d: weight_seconds / d + 2 * num_layers * s for d, s in all_reduce_seconds.items()}
    parts = {d: times[2 * d] / times[d] - 1 for d in times if 2 * d in times}
    return next((d for d in parts if parts[d] > -least), max(times)), parts


def recursive(weight_seconds, num_layers, all_reduce_seconds, least):
    def step(degree):
        return weight_seconds / degree + 2 * num_layers * all_reduce_seconds[degree]

    def climb(degree):
        after = 2 * degree
        pays = after in parts_end and (step(degree) - step(after)) / step(degree) >= least
        return climb(after) if pays else degree

    parts_end = set(all_reduce_seconds)
    parts = {d: (step(d) - step(2 * d)) / step(d) for d in sorted(parts_end) if 2 * d in parts_end}
    return climb(min(parts_end)), parts


def in_numpy(weight_seconds, num_layers, all_reduce_seconds, least):
    import numpy as np

    degrees = np.array(sorted(all_reduce_seconds))
    reduces = np.array([all_reduce_seconds[int(d)] for d in degrees])
    steps = weight_seconds / degrees + 2 * num_layers * reduces
    parts = -np.diff(steps) / steps[:-1]
    failing = np.flatnonzero(parts < least)
    place = failing[0] if failing.size else len(degrees) - 1
    return degrees[place], {int(d): p for d, p in zip(degrees, parts, strict=False)}


WRONG = [percent, knows_the_last_degree_too, always_from_one_gpu, turned_sign]
RIGHT = [recursive, in_numpy]
