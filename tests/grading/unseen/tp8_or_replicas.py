"""Solutions of tp8_or_replicas as a class would hand them in."""


def _time(n, model, link, batch):
    ring = 2 * (n - 1) * link["hop_seconds"]
    ring += 2 * (n - 1) / n * batch * model["row_bytes"] / link["bandwidth"]
    return model["weight_seconds"] / n + 2 * model["num_layers"] * ring


def always_replicas(gpus, replicas, model, link, room, slo):
    n, batch = gpus // replicas, room[1]
    return replicas, batch, replicas * batch / _time(n, model, link, batch)


def says_tp8(gpus, replicas, model, link, room, slo):
    best = ("none", 0, 0.0)
    for count in (1, replicas):
        n = gpus // count
        for batch in range(1, room[count > 1] + 1):
            rate = count * batch / _time(n, model, link, batch)
            if _time(n, model, link, batch) <= slo and rate > best[2]:
                best = ("TP8" if count == 1 else "replicas", batch, rate)
    return best


def slo_in_milliseconds(gpus, replicas, model, link, room, slo):
    for count in (replicas, 1):
        for batch in range(room[count > 1], 0, -1):
            if 1000 * _time(gpus // count, model, link, batch) <= slo:
                return count, batch, count * batch / _time(gpus // count, model, link, batch)
    return None


def tokens_per_gpu(gpus, replicas, model, link, room, slo):
    best = None
    for count in (1, replicas):
        for batch in range(1, room[count > 1] + 1):
            time = _time(gpus // count, model, link, batch)
            if time <= slo and (best is None or count * batch / time / gpus > best[2]):
                best = count, batch, count * batch / time / gpus
    return best


def tries_every_batch(gpus, replicas, model, link, room, slo):
    points = [
        (count, batch, count * batch / _time(gpus // count, model, link, batch))
        for count, most in zip((1, replicas), room, strict=True)
        for batch in range(1, most + 1)
        if _time(gpus // count, model, link, batch) <= slo
    ]
    return max(points, key=lambda point: point[2]) if points else None


def solved_for_the_batch(gpus, replicas, model, link, room, slo):
    best = None
    for index, count in enumerate((1, replicas)):
        n = gpus // count
        fixed = _time(n, model, link, 0)
        each = _time(n, model, link, 1) - fixed
        batch = min(room[index], int((slo - fixed) / each) if slo > fixed else 0)
        if batch >= 1:
            rate = count * batch / (fixed + each * batch)
            best = (count, batch, rate) if best is None or rate > best[2] else best
    return best


WRONG = [always_replicas, says_tp8, slo_in_milliseconds, tokens_per_gpu]
RIGHT = [tries_every_batch, solved_for_the_batch]
