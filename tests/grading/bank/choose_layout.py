"""Wrong solutions of `choose_layout`, by the diagnosis that each must get."""

import math


def _seconds(q, tp, batch):
    hop = q["hop_seconds"] + batch * q["hidden_size"] * 2 / tp / q["link_bandwidth"]
    weights = q["weight_bytes"] / tp / q["memory_bandwidth"]
    return weights + 2 * q["num_layers"] * 2 * (tp - 1) * hop


def _sizes(q):
    return [size for size in range(1, q["gpus"] + 1) if q["gpus"] % size == 0]


def _word(q, tp, pp=1, *, ask=("illegal", "too large", "misses the SLO")):
    kv = q["num_kv_heads"]
    free = q["usable_bytes"] - q["other_bytes"] - q["weight_bytes"] / tp / pp
    held = q["kv_bytes_per_token"] / min(tp, kv) / pp * q["tokens_per_request"]
    found = {
        "illegal": q["num_heads"] % tp or q["mlp_width"] % tp or (kv % tp and tp % kv),
        "too large": free < held,
        "misses the SLO": _seconds(q, tp, 1) > (q["slo"] or math.inf),
    }
    return next((word for word in ask if found[word]), "behind")


def _score(q, tp, pp, *, limit=None):
    kv = q["num_kv_heads"]
    free = q["usable_bytes"] - q["other_bytes"] - q["weight_bytes"] / tp / pp
    held = q["kv_bytes_per_token"] / min(tp, kv) / pp * q["tokens_per_request"]
    if q["objective"] == "latency":
        return 1 / _seconds(q, tp, 1)
    limit = limit or q["slo"]
    batch = max(b for b in range(1, int(free / held) + 1) if _seconds(q, tp, b) <= limit)
    return q["gpus"] // (tp * pp) * batch / _seconds(q, tp, batch)


def _answer(q, tp, pp=1, replicas=None):
    words = {size: _word(q, size) for size in _sizes(q) if (size, 1) != (tp, pp)}
    replicas = replicas or q["gpus"] // (tp * pp)
    return {"tp": tp, "pp": pp, "replicas": replicas, "why_not": words}


def _serving(q):
    return [
        (tp, pp)
        for tp in _sizes(q)
        for pp in _sizes(q)
        if q["gpus"] % (tp * pp) == 0 and _word(q, tp, pp) == "behind"
    ]


def _best(q):
    return max(_serving(q), key=lambda pair: (_score(q, *pair), -pair[1]))


def all_gpus_whatever_the_heads(question):
    if _word(question, question["gpus"]) == "illegal":
        return _answer(question, question["gpus"])
    return _answer(question, *_best(question))


def three_ranks_where_replicas_win(question):
    tp, pp = _best(question)
    return _answer(question, 3) if tp < question["gpus"] else _answer(question, tp, pp)


def weights_do_not_count(question):
    fits = _word(question, 1, ask=("too large",)) != "too large"
    return _answer(question, *_best(question)) if fits else _answer(question, 1)


def smallest_group_that_fits(question):
    ask = ("illegal", "too large")
    fitting = [tp for tp in _sizes(question) if _word(question, tp, ask=ask) == "behind"]
    missing = [tp for tp in fitting if _word(question, tp) == "misses the SLO"]
    return _answer(question, missing[0]) if missing else _answer(question, *_best(question))


def smallest_group_that_serves(question):
    return _answer(question, *min(_serving(question)))


def deepest_pipeline_that_serves(question):
    return _answer(question, *max(_serving(question), key=lambda pair: (pair[1], pair[0])))


def the_slowest(question):
    return _answer(question, *min(_serving(question), key=lambda pair: _score(question, *pair)))


def one_replica_of_it(question):
    tp, pp = _best(question)
    return _answer(question, tp, pp, 1)


def a_replica_for_each_gpu(question):
    tp, pp = _best(question)
    return _answer(question, tp, pp, question["gpus"])


def everything_else_is_behind(question):
    found = _answer(question, *_best(question))
    return found | {"why_not": dict.fromkeys(found["why_not"], "behind")}


def never_illegal(question):
    found = _answer(question, *_best(question))
    ask = ("too large", "misses the SLO")
    return found | {"why_not": {tp: _word(question, tp, ask=ask) for tp in found["why_not"]}}


def whatever_is_slower_misses_the_slo(question):
    found = _answer(question, *_best(question))
    words = {
        tp: "misses the SLO" if word == "behind" else word for tp, word in found["why_not"].items()
    }
    return found | {"why_not": words}


def weights_fit_on_no_single_gpu(question):
    found = _answer(question, *_best(question))
    first = {1: "too large"} if found["why_not"].get(1) == "behind" else {}
    return found | {"why_not": found["why_not"] | first}


def the_slo_before_the_memory(question):
    found = _answer(question, *_best(question))
    ask = ("misses the SLO", "illegal", "too large")
    return found | {"why_not": {tp: _word(question, tp, ask=ask) for tp in found["why_not"]}}


def no_reasons(question):
    found = _answer(question, *_best(question))
    del found["why_not"]
    return found


def own_words(question):
    found = _answer(question, *_best(question))
    return found | {"why_not": dict.fromkeys(found["why_not"], "slow")}


def a_tuple(question):
    return tuple(_answer(question, *_best(question)).values())


WRONG = {
    "illegal": [all_gpus_whatever_the_heads, three_ranks_where_replicas_win],
    "too-large": [weights_do_not_count],
    "misses-slo": [smallest_group_that_fits],
    "behind": [smallest_group_that_serves, deepest_pipeline_that_serves, the_slowest],
    "idle-gpus": [one_replica_of_it],
    "too-many-gpus": [a_replica_for_each_gpu],
    "reason-for-what-does-not-serve": [everything_else_is_behind, never_illegal],
    "refuses-what-serves": [whatever_is_slower_misses_the_slo, weights_fit_on_no_single_gpu],
    "another-reason": [the_slo_before_the_memory],
    "wrong-shape": [no_reasons],
    "values-differ": [own_words],
    "wrong-type": [a_tuple],
}
