"""Wrong solutions of `kv_capacity`, by the diagnosis that each must get.

`_stage` is the right way for one stage; its switches are what students leave out.
"""

import math


def _stage(
    a, stage, *, heads=None, layers=None, weights=None, usable=None, overhead=None, halves=1
):
    usable = a["memory_bytes"] * a["utilization"] if usable is None else usable
    weights = stage["weight_bytes"] / a["tp"] if weights is None else weights
    overhead = a["overhead_bytes"] if overhead is None else overhead
    heads = max(1, math.ceil(a["num_kv_heads"] / a["tp"])) if heads is None else heads
    layers = stage["layers"] if layers is None else layers
    token = 2 * layers * heads * a["head_dim"] * a["bytes_per_element"] / halves
    return usable - weights - overhead, token


def _tokens(a, pool, token):
    return max(0, math.floor(pool / (token * a["block_size"])) * a["block_size"])


def _each(a, **switches):
    return [_tokens(a, *_stage(a, stage, **switches)) for stage in a["stages"]]


def adds_up_all_memory(**a):
    if len(a["stages"]) == 1:
        return min(_each(a))
    ranks = a["tp"] * len(a["stages"])
    free = ranks * (a["memory_bytes"] * a["utilization"] - a["overhead_bytes"])
    free -= sum(stage["weight_bytes"] for stage in a["stages"])
    layers = sum(stage["layers"] for stage in a["stages"])
    token = 2 * layers * a["num_kv_heads"] * a["head_dim"] * a["bytes_per_element"]
    return _tokens(a, free, token)


def takes_the_mean(**a):
    return sum(_each(a)) // len(a["stages"])


def takes_the_largest(**a):
    return max(_each(a))


def adds_the_stages(**a):
    return sum(_each(a))


def all_layers_on_each_stage(**a):
    return min(_each(a, layers=sum(stage["layers"] for stage in a["stages"])))


def every_rank_has_all_heads(**a):
    return min(_each(a, heads=a["num_kv_heads"]))


def fractions_of_heads(**a):
    return min(_each(a, heads=a["num_kv_heads"] / a["tp"]))


def whole_weights_on_each_rank(**a):
    return min(
        _tokens(a, *_stage(a, stage, weights=stage["weight_bytes"])) for stage in a["stages"]
    )


def uses_all_memory(**a):
    return min(_each(a, usable=a["memory_bytes"]))


def a_part_of_what_is_left(**a):
    found = []
    for stage in a["stages"]:
        left = a["memory_bytes"] - stage["weight_bytes"] / a["tp"]
        pool = left * a["utilization"] - a["overhead_bytes"]
        found.append(_tokens(a, pool, _stage(a, stage)[1]))
    return min(found)


def a_part_of_everything_left(**a):
    found = []
    for stage in a["stages"]:
        left = a["memory_bytes"] - stage["weight_bytes"] / a["tp"] - a["overhead_bytes"]
        found.append(_tokens(a, left * a["utilization"], _stage(a, stage)[1]))
    return min(found)


def forgets_the_overhead(**a):
    return min(_each(a, overhead=0))


def shares_the_overhead(**a):
    return min(_each(a, overhead=a["overhead_bytes"] / a["tp"]))


def counts_tokens_not_blocks(**a):
    pools = [_stage(a, stage) for stage in a["stages"]]
    return max(0, min(math.floor(pool / token) for pool, token in pools))


def rounds_blocks_up(**a):
    pools = [_stage(a, stage) for stage in a["stages"]]
    tokens = min(pool / token for pool, token in pools)
    return max(0, math.ceil(tokens / a["block_size"]) * a["block_size"])


def only_keys(**a):
    return min(_each(a, halves=2))


def negative_rooms(**a):
    pools = [_stage(a, stage) for stage in a["stages"]]
    blocks = min(math.floor(pool / (token * a["block_size"])) for pool, token in pools)
    return blocks * a["block_size"]


def a_float(**a):
    return float(min(_each(a)))


WRONG = {
    "one-heap": [adds_up_all_memory],
    "mean-of-stages": [takes_the_mean],
    "roomiest-stage": [takes_the_largest],
    "sum-of-stages": [adds_the_stages],
    "all-layers-each": [all_layers_on_each_stage],
    "heads-not-divided": [every_rank_has_all_heads],
    "head-cut-up": [fractions_of_heads],
    "weights-not-divided": [whole_weights_on_each_rank],
    "utilization-ignored": [uses_all_memory],
    "utilization-of-the-rest": [a_part_of_what_is_left, a_part_of_everything_left],
    "overhead-ignored": [forgets_the_overhead],
    "overhead-divided": [shares_the_overhead],
    "started-block": [counts_tokens_not_blocks, rounds_blocks_up],
    "key-or-value": [only_keys],
    "below-nothing": [negative_rooms],
    "wrong-type": [a_float],
}
