"""Solutions of read_engine_log as a class would hand them in."""


def divides_by_a_whole_request(log):
    pool = log["utilization"] * log["total_gib"] - log["weights_gib"] - log["activations_gib"]
    tokens = int(pool * 2**20 / log["kv_kib_per_token"])
    ways = tokens / log["max_model_len"]
    return {"kv_tokens": tokens, "concurrency": ways, "bound": "KV pool" if ways > 1 else "weights"}


def other_names(log):
    found = in_kib(log)
    names = {"KV pool": "kv", "max length": "length"}
    return found | {"bound": names.get(found["bound"], found["bound"])}


def concurrency_in_percent(log):
    found = in_kib(log)
    return found | {"concurrency": 100 * found["concurrency"]}


def forgets_the_concurrency(log):
    found = in_kib(log)
    del found["concurrency"]
    return found


def in_kib(log):
    free = (log["utilization"] * log["total_gib"] - log["weights_gib"] - log["other_gib"]) * 2**20
    block = log["kv_kib_per_token"] * log["block_size"]
    blocks = max(0, int((free - log["activations_gib"] * 2**20) / block))
    tokens = blocks * log["block_size"]
    need = -(-log["max_model_len"] // log["block_size"]) * block
    if free <= 0:
        bound = "weights"
    elif tokens >= log["max_model_len"]:
        bound = "KV pool"
    else:
        bound = "activations" if need <= free else "max length"
    return {
        "bound": bound,
        "concurrency": tokens / log["max_model_len"],
        "kv_tokens": tokens,
    }


def block_by_block(log):
    size = log["kv_kib_per_token"] * 1024 * log["block_size"]
    budget = log["utilization"] * log["total_gib"] - log["weights_gib"] - log["other_gib"]

    def tokens(gib):
        count, left = 0, gib * 1024**3
        while left >= size:
            left -= size
            count += log["block_size"]
        return count

    held = tokens(budget - log["activations_gib"])
    starts, would = held >= log["max_model_len"], tokens(budget) >= log["max_model_len"]
    bound = "KV pool" if starts else "activations" if would else "max length"
    if budget <= 0:
        bound = "weights"
    return {"kv_tokens": held, "concurrency": held / log["max_model_len"], "bound": bound}


WRONG = [
    divides_by_a_whole_request,
    other_names,
    concurrency_in_percent,
    forgets_the_concurrency,
]
RIGHT = [in_kib, block_by_block]
