"""Wrong solutions of `decode_step_terms`, by the diagnosis that each must get."""


def _terms(a):
    """The right four terms, from which a student's slip is one step away."""
    n, size = a["tp"], a["bytes_per_element"]
    meetings = 2 * a["layers"]
    payload = a["batch"] * a["hidden"] * size
    cache = a["batch"] * a["context"] * a["kv_bytes_per_token"]
    return {
        "weights": a["parameters"] * size / (n * a["memory_bandwidth"]),
        "kv": cache / (n * a["memory_bandwidth"]),
        "latency": meetings * 2 * (n - 1) * a["hop_latency"],
        "transfer": meetings * 2 * (n - 1) / n * payload / a["bandwidth"],
    }


def reads_everything_everywhere(**a):
    return _terms(a) | {"weights": _terms(a)["weights"] * a["tp"]}


def reads_weights_for_each_sequence(**a):
    return _terms(a) | {"weights": _terms(a)["weights"] * a["batch"]}


def reads_parameters_not_bytes(**a):
    return _terms(a) | {"weights": a["parameters"] / a["tp"] / a["memory_bandwidth"]}


def one_sequences_cache(**a):
    cache = a["context"] * a["kv_bytes_per_token"]
    return _terms(a) | {"kv": cache / a["tp"] / a["memory_bandwidth"]}


def the_whole_models_cache(**a):
    return _terms(a) | {"kv": _terms(a)["kv"] * a["tp"]}


def the_newest_token_only(**a):
    return _terms(a) | {"kv": _terms(a)["kv"] / a["context"]}


def one_sum_a_layer(**a):
    terms = _terms(a)
    return terms | {"latency": terms["latency"] / 2, "transfer": terms["transfer"] / 2}


def once_round_in_hops(**a):
    return _terms(a) | {"latency": 2 * a["layers"] * (a["tp"] - 1) * a["hop_latency"]}


def once_round_in_bytes(**a):
    return _terms(a) | {"transfer": _terms(a)["transfer"] / 2}


def one_hop_each(**a):
    hops = 1 if a["tp"] > 1 else 0
    return _terms(a) | {"latency": 2 * a["layers"] * hops * a["hop_latency"]}


def two_hops_each(**a):
    hops = 2 if a["tp"] > 1 else 0
    return _terms(a) | {"latency": 2 * a["layers"] * hops * a["hop_latency"]}


def a_hop_for_each_rank(**a):
    hops = 2 * a["tp"] if a["tp"] > 1 else 0
    return _terms(a) | {"latency": 2 * a["layers"] * hops * a["hop_latency"]}


def forgets_the_cutting(**a):
    payload = a["batch"] * a["hidden"] * a["bytes_per_element"]
    sent = 2 * (a["tp"] - 1) * payload
    return _terms(a) | {"transfer": 2 * a["layers"] * sent / a["bandwidth"]}


def twice_the_tensor(**a):
    payload = a["batch"] * a["hidden"] * a["bytes_per_element"]
    sent = 2 * payload if a["tp"] > 1 else 0
    return _terms(a) | {"transfer": 2 * a["layers"] * sent / a["bandwidth"]}


def one_row_is_summed(**a):
    return _terms(a) | {"transfer": _terms(a)["transfer"] / a["batch"]}


def alone_it_still_talks(**a):
    if a["tp"] > 1:
        return _terms(a)
    return _terms(a) | {"latency": 2 * 2 * a["layers"] * a["hop_latency"]}


def alone_it_sends_all_of_it(**a):
    if a["tp"] > 1:
        return _terms(a)
    payload = a["batch"] * a["hidden"] * a["bytes_per_element"]
    return _terms(a) | {"transfer": 2 * 2 * a["layers"] * payload / a["bandwidth"]}


def a_list(**a):
    return list(_terms(a).values())


def the_sum_alone(**a):
    return sum(_terms(a).values())


WRONG = {
    "weights-whole": [reads_everything_everywhere],
    "weights-by-batch": [reads_weights_for_each_sequence],
    "elements-for-bytes": [reads_parameters_not_bytes],
    "cache-of-one": [one_sequences_cache],
    "cache-whole": [the_whole_models_cache],
    "one-token-of-cache": [the_newest_token_only],
    "half-the-way": [one_sum_a_layer, once_round_in_hops, once_round_in_bytes],
    "one-hop": [one_hop_each, two_hops_each],
    "n-hops": [a_hop_for_each_rank],
    "whole-tensors": [forgets_the_cutting],
    "own-part-sent": [twice_the_tensor],
    "payload-of-one": [one_row_is_summed],
    "alone-and-talking": [alone_it_still_talks, alone_it_sends_all_of_it],
    "wrong-type": [a_list, the_sum_alone],
}
