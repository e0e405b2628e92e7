"""Wrong solutions of `tp8_or_replicas`, by the diagnosis that each must get."""


def _step(gpus, replicas, model, link, batch, calls=2):
    n = gpus // replicas
    payload = batch * model["row_bytes"]
    reduce = 2 * (n - 1) * (link["hop_seconds"] + payload / n / link["bandwidth"])
    return model["weight_seconds"] / n + calls * model["num_layers"] * reduce


def _largest(gpus, replicas, model, link, most, slo, calls=2):
    batch = 0
    while batch < most and _step(gpus, replicas, model, link, batch + 1, calls) <= slo:
        batch += 1
    return batch


def _options(gpus, replicas, model, link, room, slo, calls=2):
    """(replicas, batch, tokens per second of one replica), of layouts that keep the SLO."""
    found = []
    for count, most in zip((1, replicas), room, strict=True):
        batch = _largest(gpus, count, model, link, most, slo, calls)
        if batch:
            found.append((count, batch, batch / _step(gpus, count, model, link, batch, calls)))
    return found


def _total(option):
    return option[0] * option[2]


def _answer(option):
    return option and (option[0], option[1], _total(option))


def _right(*asked):
    return _answer(max(_options(*asked), key=_total, default=None))


def one_replicas_tokens(gpus, replicas, model, link, room, slo):
    options = _options(gpus, replicas, model, link, room, slo)
    return _answer(max(options, key=lambda o: o[2], default=None))


def compares_all_and_returns_one(gpus, replicas, model, link, room, slo):
    return max(_options(gpus, replicas, model, link, room, slo), key=_total, default=None)


def batch_of_all(gpus, replicas, model, link, room, slo):
    found = _right(gpus, replicas, model, link, room, slo)
    return found and (found[0], found[0] * found[1], found[2])


def replicas_that_have_all_gpus(gpus, replicas, model, link, room, slo):
    found = []
    for count, most in zip((1, replicas), room, strict=True):
        batch = _largest(gpus, 1, model, link, most, slo)
        if batch:
            found.append((count, batch, count * batch / _step(gpus, 1, model, link, batch)))
    return max(found, key=lambda o: o[2], default=None)


def no_room_needed(gpus, replicas, model, link, room, slo):
    return _right(gpus, replicas, model, link, (10**5, 10**5), slo)


def fills_the_cache(gpus, replicas, model, link, room, slo):
    found = []
    for count, most in zip((1, replicas), room, strict=True):
        if _step(gpus, count, model, link, 1) <= slo:
            rate = count * most / _step(gpus, count, model, link, most)
            found.append((count, most, rate))
    return max(found, key=lambda o: o[2], default=None)


def one_sequence(gpus, replicas, model, link, room, slo):
    return _right(gpus, replicas, model, link, (1, 1), slo)


def powers_of_two(gpus, replicas, model, link, room, slo):
    found = []
    for count, most in zip((1, replicas), room, strict=True):
        batch = 1
        if _step(gpus, count, model, link, 1) > slo:
            continue
        while 2 * batch <= most and _step(gpus, count, model, link, 2 * batch) <= slo:
            batch *= 2
        found.append((count, batch, count * batch / _step(gpus, count, model, link, batch)))
    return max(found, key=lambda o: o[2], default=None)


def stops_after_it_is_too_slow(gpus, replicas, model, link, room, slo):
    found = []
    for count, most in zip((1, replicas), room, strict=True):
        batch = 1
        if _step(gpus, count, model, link, 1) > slo:
            continue
        while batch < most and _step(gpus, count, model, link, batch) <= slo:
            batch += 1
        found.append((count, batch, count * batch / _step(gpus, count, model, link, batch)))
    return max(found, key=lambda o: o[2], default=None)


def one_all_reduce_a_layer(gpus, replicas, model, link, room, slo):
    options = _options(gpus, replicas, model, link, room, slo, calls=1)
    if _right(gpus, replicas, model, link, room, slo) is None:
        return None
    return _answer(max(options, key=_total, default=None))


def shorter_step(gpus, replicas, model, link, room, slo):
    options = _options(gpus, replicas, model, link, room, slo)
    return _answer(min(options, key=lambda o: o[1] / o[2], default=None))


def one_group_where_it_keeps_the_slo(gpus, replicas, model, link, room, slo):
    options = _options(gpus, replicas, model, link, room, slo)
    return _answer(options[0]) if options else None


def larger_batch(gpus, replicas, model, link, room, slo):
    options = _options(gpus, replicas, model, link, room, slo)
    return _answer(max(options, key=lambda o: (o[1], o[0] == 1), default=None))


def one_group_where_nothing_serves(gpus, replicas, model, link, room, slo):
    found = _right(gpus, replicas, model, link, room, slo)
    return found or (1, 1, 1 / _step(gpus, 1, model, link, 1))


def zeros_where_nothing_serves(gpus, replicas, model, link, room, slo):
    return _right(gpus, replicas, model, link, room, slo) or (1, 0, 0.0)


def layout_and_batch(gpus, replicas, model, link, room, slo):
    found = _right(gpus, replicas, model, link, room, slo)
    return found and found[:2]


WRONG = {
    "one-replica-counted": [compares_all_and_returns_one],
    "batch-of-all-replicas": [batch_of_all],
    "replica-on-all-gpus": [replicas_that_have_all_gpus],
    "KV-cache-forgotten": [no_room_needed],
    "SLO-forgotten": [fills_the_cache],
    "batch-of-one": [one_sequence],
    "batch-too-coarse": [powers_of_two],
    "one-sequence-too-many": [stops_after_it_is_too_slow],
    "half-the-all-reduces": [one_all_reduce_a_layer],
    "layout-by-a-part": [
        shorter_step,
        one_group_where_it_keeps_the_slo,
        larger_batch,
        one_replicas_tokens,
    ],
    "answers-although-none": [one_group_where_nothing_serves, zeros_where_nothing_serves],
    "wrong-length": [layout_and_batch],
}
