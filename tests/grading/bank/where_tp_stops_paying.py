"""Wrong solutions of `where_tp_stops_paying`, by the diagnosis that each must get."""


def _steps(weight_seconds, num_layers, all_reduce_seconds):
    return {d: weight_seconds / d + 2 * num_layers * s for d, s in all_reduce_seconds.items()}


def _savings(steps):
    return {d: 1 - steps[2 * d] / s for d, s in steps.items() if 2 * d in steps}


def _climb(savings, least, degrees):
    degree = min(degrees)
    while degree in savings and savings[degree] >= least:
        degree *= 2
    return degree


def _answer(steps, least):
    savings = _savings(steps)
    return _climb(savings, least, steps), savings


def one_all_reduce_a_layer(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = {d: weight_seconds / d + num_layers * s for d, s in all_reduce_seconds.items()}
    return _answer(steps, least)


def attention_alone_is_reduced(weight_seconds, num_layers, all_reduce_seconds, least):
    return _answer(_steps(weight_seconds, num_layers / 2, all_reduce_seconds), least)


def every_rank_reads_everything(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = {d: weight_seconds + 2 * num_layers * s for d, s in all_reduce_seconds.items()}
    return _answer(steps, least)


def divides_all(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = {d: (weight_seconds + 2 * num_layers * s) / d for d, s in all_reduce_seconds.items()}
    return _answer(steps, least)


def perfect_scaling(weight_seconds, num_layers, all_reduce_seconds, least):
    return _answer({d: weight_seconds / d for d in all_reduce_seconds}, least)


def parts_of_the_first_step(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    first = steps[min(steps)]
    savings = {d: (s - steps[2 * d]) / first for d, s in steps.items() if 2 * d in steps}
    return _climb(savings, least, steps), savings


def speedup_less_one(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    savings = {d: s / steps[2 * d] - 1 for d, s in steps.items() if 2 * d in steps}
    return _climb(savings, least, steps), savings


def seconds_saved(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    savings = {d: s - steps[2 * d] for d, s in steps.items() if 2 * d in steps}
    return _climb(savings, least, steps), savings


def seconds_saved_and_the_right_degree(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    saved = {d: s - steps[2 * d] for d, s in steps.items() if 2 * d in steps}
    return _answer(steps, least)[0], saved


def shortest_step(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    return min(steps, key=steps.get), _savings(steps)


def from_the_top(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    savings = _savings(steps)
    degree = max(steps)
    while degree // 2 in savings and savings[degree // 2] < least:
        degree //= 2
    return degree, savings


def last_one_that_paid(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    savings = _savings(steps)
    found = min(steps)
    for degree, saved in savings.items():
        if saved >= least:
            found = 2 * degree
    return found, savings


def the_doubling_that_fails(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    degree, savings = _answer(steps, least)
    return min(2 * degree, max(steps)), savings


def until_it_gets_slower(weight_seconds, num_layers, all_reduce_seconds, least):
    steps = _steps(weight_seconds, num_layers, all_reduce_seconds)
    savings = _savings(steps)
    return _climb(savings, 0, steps), savings


def degree_alone(weight_seconds, num_layers, all_reduce_seconds, least):
    return _answer(_steps(weight_seconds, num_layers, all_reduce_seconds), least)[0]


def savings_as_a_list(weight_seconds, num_layers, all_reduce_seconds, least):
    degree, savings = _answer(_steps(weight_seconds, num_layers, all_reduce_seconds), least)
    return degree, list(savings.values())


WRONG = {
    "half-the-all-reduces": [one_all_reduce_a_layer, attention_alone_is_reduced],
    "weights-not-divided": [every_rank_reads_everything],
    "all-reduce-divided": [divides_all],
    "no-all-reduces": [perfect_scaling],
    "against-the-first": [parts_of_the_first_step],
    "over-the-new-step": [speedup_less_one],
    "seconds-not-parts": [seconds_saved, seconds_saved_and_the_right_degree],
    "fastest-degree": [shortest_step, until_it_gets_slower],
    "looks-past-the-dip": [from_the_top, last_one_that_paid],
    "one-doubling-too-far": [the_doubling_that_fails],
    "wrong-type": [degree_alone, savings_as_a_list],
}
