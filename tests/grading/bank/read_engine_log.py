"""Wrong solutions of `read_engine_log`, by the diagnosis that each must get."""


def _tokens(pool, log, gib=2**30, kib=2**10):
    block = log["kv_kib_per_token"] * kib * log["block_size"]
    return int(pool * gib // block) * log["block_size"]


def _right(log, usable=None, **units):
    usable = log["utilization"] * log["total_gib"] if usable is None else usable
    left = usable - log["weights_gib"] - log["other_gib"]
    length = log["max_model_len"]
    tokens = max(0, _tokens(left - log["activations_gib"], log, **units))
    bound = "max length"
    if left <= 0:
        bound = "weights"
    elif tokens >= length:
        bound = "KV pool"
    elif _tokens(left, log, **units) >= length:
        bound = "activations"
    return {"kv_tokens": tokens, "concurrency": tokens / length, "bound": bound}


def _pool(log):
    taken = log["weights_gib"] + log["other_gib"] + log["activations_gib"]
    return log["utilization"] * log["total_gib"] - taken


def all_of_the_memory(log):
    return _right(log, usable=log["total_gib"])


def no_activations(log):
    return _right({**log, "activations_gib": 0})


def no_runtime(log):
    return _right({**log, "other_gib": 0})


def part_of_what_the_weights_leave(log):
    left = log["total_gib"] - log["weights_gib"] - log["other_gib"] - log["activations_gib"]
    taken = log["total_gib"] - left
    return _right(log, usable=log["utilization"] * left + taken)


def weights_twice(log):
    return _right(log, usable=log["utilization"] * log["total_gib"] - log["weights_gib"])


def decimal_gigabytes(log):
    return _right(log, gib=1e9)


def decimal_kilobytes(log):
    return _right(log, kib=1000)


def tokens_without_blocks(log):
    found = _right(log)
    if _pool(log) > 0:
        tokens = int(_pool(log) * 2**30 / (log["kv_kib_per_token"] * 2**10))
        found |= {"kv_tokens": tokens, "concurrency": tokens / log["max_model_len"]}
    return found


def number_of_blocks(log):
    found = _right(log)
    blocks = found["kv_tokens"] // log["block_size"]
    return found | {"kv_tokens": blocks, "concurrency": blocks / log["max_model_len"]}


def blocks_beside_the_right_concurrency(log):
    found = _right(log)
    return found | {"kv_tokens": found["kv_tokens"] // log["block_size"]}


def a_debt_of_tokens(log):
    tokens = _tokens(_pool(log), log)
    return _right(log) | {"kv_tokens": tokens, "concurrency": tokens / log["max_model_len"]}


def whole_requests_only(log):
    found = _right(log)
    return found | {"concurrency": found["kv_tokens"] // log["max_model_len"]}


def two_digits(log):
    found = _right(log)
    return found | {"concurrency": round(found["concurrency"], 2)}


def the_largest_part(log):
    return _right(log) | {"bound": "weights"}


def always_the_pool(log):
    return _right(log) | {"bound": "KV pool"}


def refused_means_no_pool(log):
    found = _right(log)
    return found | {"bound": "KV pool" if found["bound"] == "max length" else found["bound"]}


def refused_means_too_long(log):
    found = _right(log)
    return found | {"bound": "max length" if found["concurrency"] < 1 else "KV pool"}


def refused_means_activations(log):
    found = _right(log)
    bound = found["bound"]
    return found | {"bound": "activations" if bound == "max length" else bound}


def only_the_bound(log):
    return _right(log)["bound"]


def a_tuple(log):
    return tuple(_right(log).values())


WRONG = {
    "pool-too-large": [all_of_the_memory, no_activations, no_runtime],
    "pool-too-small": [part_of_what_the_weights_leave, weights_twice],
    "mixed-units": [decimal_gigabytes, decimal_kilobytes],
    "part-of-a-block": [tokens_without_blocks],
    "blocks-for-tokens": [number_of_blocks, blocks_beside_the_right_concurrency],
    "fewer-than-none": [a_debt_of_tokens],
    "whole-requests": [whole_requests_only, two_digits],
    "weights-blamed": [the_largest_part],
    "pool-blamed": [always_the_pool, refused_means_no_pool],
    "length-blamed": [refused_means_too_long],
    "activations-blamed": [refused_means_activations],
    "wrong-type": [only_the_bound, a_tuple],
}
