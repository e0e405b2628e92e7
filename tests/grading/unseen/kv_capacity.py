"""Solutions of kv_capacity as a class would hand them in."""


def first_stage_only(
    memory_bytes, utilization, overhead_bytes, stages, tp, num_kv_heads, head_dim,
    bytes_per_element, block_size,
):  # fmt: skip
    stage = stages[0]
    pool = memory_bytes * utilization - stage["weight_bytes"] / tp - overhead_bytes
    token = 2 * stage["layers"] * max(1, num_kv_heads // tp) * head_dim * bytes_per_element
    return max(0, int(pool // (token * block_size)) * block_size)


def blocks_and_not_tokens(
    memory_bytes, utilization, overhead_bytes, stages, tp, num_kv_heads, head_dim,
    bytes_per_element, block_size,
):  # fmt: skip
    found = []
    for stage in stages:
        pool = memory_bytes * utilization - stage["weight_bytes"] / tp - overhead_bytes
        token = 2 * stage["layers"] * -(-num_kv_heads // tp) * head_dim * bytes_per_element
        found.append(int(pool // (token * block_size)))
    return max(0, min(found))


def heads_rounded_down(
    memory_bytes, utilization, overhead_bytes, stages, tp, num_kv_heads, head_dim,
    bytes_per_element, block_size,
):  # fmt: skip
    heads = num_kv_heads // tp
    found = []
    for stage in stages:
        pool = memory_bytes * utilization - stage["weight_bytes"] / tp - overhead_bytes
        token = 2 * stage["layers"] * heads * head_dim * bytes_per_element
        found.append(int(pool // (token * block_size)) * block_size)
    return max(0, min(found))


def utilization_in_percent(
    memory_bytes, utilization, overhead_bytes, stages, tp, num_kv_heads, head_dim,
    bytes_per_element, block_size,
):  # fmt: skip
    usable = memory_bytes * utilization / 100
    rooms = [usable - stage["weight_bytes"] / tp - overhead_bytes for stage in stages]
    return 0 if min(rooms) < 0 else int(min(rooms))


def with_whole_numbers(
    memory_bytes, utilization, overhead_bytes, stages, tp, num_kv_heads, head_dim,
    bytes_per_element, block_size,
):  # fmt: skip
    heads = (num_kv_heads + tp - 1) // tp
    best = None
    for stage in stages:
        room = memory_bytes * utilization - overhead_bytes - stage["weight_bytes"] / tp
        block = 2 * stage["layers"] * heads * head_dim * bytes_per_element * block_size
        blocks = int(room // block) if room > 0 else 0
        best = blocks if best is None else min(best, blocks)
    return best * block_size


def a_generator(**given):
    def blocks():
        for stage in given["stages"]:
            heads = max(1, -(-given["num_kv_heads"] // given["tp"]))
            token = 2 * stage["layers"] * heads * given["head_dim"] * given["bytes_per_element"]
            usable = given["utilization"] * given["memory_bytes"]
            room = usable - stage["weight_bytes"] / given["tp"] - given["overhead_bytes"]
            yield max(0, room) // (token * given["block_size"])

    return int(min(blocks())) * given["block_size"]


WRONG = [first_stage_only, blocks_and_not_tokens, heads_rounded_down, utilization_in_percent]
RIGHT = [with_whole_numbers, a_generator]
