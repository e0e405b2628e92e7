"""Solutions of collective_bytes as a class would hand them in."""


def same_for_everything(op, whole_bytes, n):
    return whole_bytes, 2 * (n - 1) * whole_bytes // n


def takes_the_number_for_the_payload(op, whole_bytes, n):
    factor = {"all_reduce": 2 / n, "reduce_scatter": 1 / n, "all_gather": 1, "all_to_all": 1 / n}
    return whole_bytes, round(factor[op] * (n - 1) * whole_bytes)


def payload_on_the_wire(op, whole_bytes, n):
    passed = whole_bytes // n if op == "all_gather" else whole_bytes
    return passed, passed * (n > 1)


def forgets_that_one_part_stays(op, whole_bytes, n):
    if op == "all_reduce":
        return whole_bytes, 2 * whole_bytes
    return (whole_bytes if op != "all_gather" else whole_bytes // n), whole_bytes


def bytes_of_the_whole_cluster(op, whole_bytes, n):
    chunk = whole_bytes // n
    per_rank = (n - 1) * chunk * (2 if op == "all_reduce" else 1)
    return (chunk if op == "all_gather" else whole_bytes), per_rank * n


def forgets_the_second_half(op, whole_bytes, n):
    chunk = whole_bytes // n
    return (chunk if op == "all_gather" else whole_bytes), whole_bytes - chunk


def fractions_of_bytes(op, whole_bytes, n):
    share = (n - 1) / n * whole_bytes
    passed = whole_bytes / n if op == "all_gather" else whole_bytes
    return passed, 2 * share if op == "all_reduce" else share


def wire_before_payload(op, whole_bytes, n):
    chunk = whole_bytes // n
    steps = (n - 1) * (1 + (op == "all_reduce"))
    return steps * chunk, chunk if op == "all_gather" else whole_bytes


def all_to_all_forwards_round_the_ring(op, whole_bytes, n):
    chunk = whole_bytes // n
    if op == "all_to_all":
        return whole_bytes, sum(range(n)) * chunk
    return (chunk if op == "all_gather" else whole_bytes), (n - 1) * chunk * (
        2 if op == "all_reduce" else 1
    )


def misspells_an_operation(op, whole_bytes, n):
    steps = {"allreduce": 2, "reduce_scatter": 1, "all_gather": 1, "all_to_all": 1}
    return whole_bytes, steps[op] * (n - 1) * whole_bytes // n


def one_number(op, whole_bytes, n):
    return (2 if op == "all_reduce" else 1) * (n - 1) * whole_bytes // n


def simulates_the_ring(op, whole_bytes, n):
    chunk, sent = whole_bytes // n, 0
    for _ in range(2 if op == "all_reduce" else 1):
        for _ in range(n - 1):
            sent += chunk
    return whole_bytes if op != "all_gather" else chunk, sent


def in_numpy(op, whole_bytes, n):
    import numpy as np

    chunks = np.full(n, whole_bytes // n)
    sent = chunks[1:].sum()
    if op == "all_reduce":
        sent = sent + chunks[:-1].sum()
    return (chunks[0] if op == "all_gather" else chunks.sum()), sent


def what_is_not_kept(op, whole_bytes, n):
    from fractions import Fraction

    leaves = whole_bytes * (1 - Fraction(1, n))
    if op == "all_reduce":
        return whole_bytes, int(2 * leaves)
    return int(Fraction(whole_bytes, n) if op == "all_gather" else whole_bytes), int(leaves)


WRONG = [
    same_for_everything,
    takes_the_number_for_the_payload,
    payload_on_the_wire,
    forgets_that_one_part_stays,
    bytes_of_the_whole_cluster,
    forgets_the_second_half,
    fractions_of_bytes,
    wire_before_payload,
    all_to_all_forwards_round_the_ring,
    misspells_an_operation,
    one_number,
]
RIGHT = [simulates_the_ring, in_numpy, what_is_not_kept]
