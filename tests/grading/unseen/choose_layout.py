"""Solutions of choose_layout as a class would hand them in."""


def always_tp_inside_the_node(question):
    n = question["gpus"]
    return {"tp": n, "pp": 1, "replicas": 1, "why_not": {1: "too large", 2: "too large"}}


def half_and_half(question):
    n = question["gpus"]
    words = dict.fromkeys((1, 2, 4, 8), "behind")
    return {"tp": n // 2, "pp": 2, "replicas": 1, "why_not": words}


def a_string(question):
    return "TP 4, two replicas, since fewer GPUs have fewer hops"


def one_gpu_each(question):
    n = question["gpus"]
    why = {tp: "behind" for tp in (2, 4, 8, 16) if tp <= n}
    return {"tp": 1, "pp": 1, "replicas": n, "why_not": why}


def step_time(question, tp, batch):
    payload = batch * question["hidden_size"] * 2
    ring = 2 * (tp - 1) * question["hop_seconds"]
    ring += 2 * (tp - 1) / tp * payload / question["link_bandwidth"]
    read = question["weight_bytes"] / (tp * question["memory_bandwidth"])
    return read + 2 * question["num_layers"] * ring


def describe(question, tp, pp):
    """The word and the tokens per second, or one over the latency."""
    heads, kv_heads = question["num_heads"], question["num_kv_heads"]
    if heads % tp != 0 or question["mlp_width"] % tp != 0:
        return "illegal", None
    if max(tp, kv_heads) % min(tp, kv_heads) != 0:
        return "illegal", None
    weights = question["weight_bytes"] / (tp * pp)
    pool = question["usable_bytes"] - question["other_bytes"] - weights
    token = question["kv_bytes_per_token"] / (min(tp, kv_heads) * pp)
    batch = int(pool // (token * question["tokens_per_request"]))
    if batch < 1:
        return "too large", None
    slo = question["slo"]
    if slo is not None and step_time(question, tp, 1) > slo:
        return "misses the SLO", None
    if question["objective"] == "latency":
        return "behind", 1 / step_time(question, tp, 1)
    while slo is not None and step_time(question, tp, batch) > slo:
        batch -= 1
    replicas = question["gpus"] // (tp * pp)
    return "behind", replicas * batch / step_time(question, tp, batch)


def tries_everything(question):
    gpus = question["gpus"]
    best, rate = None, 0.0
    for pp in range(1, gpus + 1):
        for tp in range(1, gpus // pp + 1):
            _, speed = describe(question, tp, pp)
            if gpus % (tp * pp) == 0 and speed is not None and speed > rate:
                best, rate = (tp, pp), speed
    words = {}
    for tp in range(1, gpus + 1):
        if gpus % tp == 0 and best != (tp, 1):
            words[tp] = describe(question, tp, 1)[0]
    replicas = gpus // (best[0] * best[1])
    return {"why_not": words, "replicas": replicas, "pp": best[1], "tp": best[0]}


def stages_only_where_nothing_else_fits(question):
    gpus = question["gpus"]
    degrees = [tp for tp in range(1, gpus + 1) if gpus % tp == 0]
    for pp in degrees:
        rates = {tp: describe(question, tp, pp)[1] or 0 for tp in degrees if tp * pp <= gpus}
        tp = max(rates, key=rates.get)
        if rates[tp]:
            words = {n: describe(question, n, 1)[0] for n in degrees if (n, 1) != (tp, pp)}
            return {"tp": tp, "pp": pp, "replicas": gpus // tp // pp, "why_not": words}


WRONG = [always_tp_inside_the_node, half_and_half, a_string, one_gpu_each]
RIGHT = [tries_everything, stages_only_where_nothing_else_fits]
