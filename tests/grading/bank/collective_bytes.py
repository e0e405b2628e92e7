"""Wrong solutions of `collective_bytes`, by the diagnosis that each must get."""

import math


def bytes_first(op, whole_bytes, n):
    payload, sent = _right(op, whole_bytes, n)
    return sent, payload


def returns_what_is_sent_and_then_the_payload(op, whole_bytes, n):
    part = whole_bytes // n
    if op == "all_gather":
        return (n - 1) * part, part
    steps = 2 * (n - 1) if op == "all_reduce" else n - 1
    return steps * part, whole_bytes


def payload_is_the_output(op, whole_bytes, n):
    payload = whole_bytes // n if op == "reduce_scatter" else whole_bytes
    return payload, _right(op, whole_bytes, n)[1]


def payload_is_always_the_whole(op, whole_bytes, n):
    return whole_bytes, _right(op, whole_bytes, n)[1]


def payload_is_one_chunk(op, whole_bytes, n):
    return whole_bytes // n, _right(op, whole_bytes, n)[1]


def payload_is_everybodys(op, whole_bytes, n):
    payload, sent = _right(op, whole_bytes, n)
    return (payload if op == "all_gather" else payload * n), sent


def all_gather_of_the_whole(op, whole_bytes, n):
    if op == "all_gather":
        return whole_bytes, (n - 1) * whole_bytes
    return _right(op, whole_bytes, n)


def wire_is_the_payload(op, whole_bytes, n):
    payload, _ = _right(op, whole_bytes, n)
    return payload, payload


def payload_twice(op, whole_bytes, n):
    payload = whole_bytes // n if op == "all_gather" else whole_bytes
    return (payload,) * 2


def sends_all_parts(op, whole_bytes, n):
    payload, _ = _right(op, whole_bytes, n)
    return payload, (2 if op == "all_reduce" else 1) * whole_bytes


def n_steps_instead_of_one_less(op, whole_bytes, n):
    part, sent = whole_bytes // n, 0
    for _ in range(2 * n if op == "all_reduce" else n):
        sent += part
    return (part if op == "all_gather" else whole_bytes), sent


def large_n_approximation(op, whole_bytes, n):
    sent = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1, "all_to_all": 1}[op]
    return _right(op, whole_bytes, n)[0], sent * whole_bytes


def one_rank_sends_too(op, whole_bytes, n):
    if n == 1:
        return whole_bytes, whole_bytes
    return _right(op, whole_bytes, n) if op != "all_to_all" else (whole_bytes, whole_bytes)


def adds_up_all_ranks(op, whole_bytes, n):
    payload, sent = _right(op, whole_bytes, n)
    return payload, n * sent


def forgets_that_parts_travel(op, whole_bytes, n):
    steps = 2 * (n - 1) if op == "all_reduce" else n - 1
    return _right(op, whole_bytes, n)[0], steps * whole_bytes


def total_on_the_wires(op, whole_bytes, n):
    return _right(op, whole_bytes, n)[0], sum(_right(op, whole_bytes, n)[1] for _ in range(n))


def one_factor_for_all(op, whole_bytes, n):
    payload, _ = _right(op, whole_bytes, n)
    return payload, (n - 1) * (whole_bytes // n)


def all_reduce_in_n_minus_one_steps(op, whole_bytes, n):
    payload, sent = _right(op, whole_bytes, n)
    return payload, int((n - 1) / n * whole_bytes) if op == "all_reduce" else sent


def the_all_reduce_factor_for_all(op, whole_bytes, n):
    return _right(op, whole_bytes, n)[0], 2 * (n - 1) * (whole_bytes // n)


def sent_and_received(op, whole_bytes, n):
    payload, sent = _right(op, whole_bytes, n)
    return payload, 2 * sent


def twice_the_factor(op, whole_bytes, n):
    factor = 4 if op == "all_reduce" else 2
    return _right(op, whole_bytes, n)[0], int(factor * (n - 1) / n * whole_bytes)


def all_reduce_in_one_shot(op, whole_bytes, n):
    if op == "all_reduce":
        return whole_bytes, (n - 1) * whole_bytes
    return _right(op, whole_bytes, n)


def all_reduce_sends_to_everybody(op, whole_bytes, n):
    payload, sent = _right(op, whole_bytes, n)
    if op == "all_reduce":
        sent = sum(payload for other in range(1, n))
    return payload, sent


def exchanges_in_powers_of_two(op, whole_bytes, n):
    if op == "all_reduce" and n == 8:
        return whole_bytes, int(math.log2(n)) * whole_bytes
    return _right(op, whole_bytes, n)


def divides_with_a_slash(op, whole_bytes, n):
    part = whole_bytes / n
    steps = 2 * (n - 1) if op == "all_reduce" else n - 1
    return (part if op == "all_gather" else whole_bytes), steps * part


def a_list(op, whole_bytes, n):
    return list(_right(op, whole_bytes, n))


def a_dict(op, whole_bytes, n):
    payload, sent = _right(op, whole_bytes, n)
    return {"payload": payload, "wire": sent}


def wire_only(op, whole_bytes, n):
    return _right(op, whole_bytes, n)[1]


def knows_no_all_to_all(op, whole_bytes, n):
    factor = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}[op]
    return _right(op, whole_bytes, n)[0], factor * (n - 1) * (whole_bytes // n)


def payload_wire_and_total(op, whole_bytes, n):
    payload, sent = _right(op, whole_bytes, n)
    return payload, sent, n * sent


def prints_them(op, whole_bytes, n):
    print(*_right(op, whole_bytes, n))


def _right(op, whole_bytes, n):
    part = whole_bytes // n
    steps = 2 * (n - 1) if op == "all_reduce" else n - 1
    return (part if op == "all_gather" else whole_bytes), steps * part


WRONG = {
    "swapped": [bytes_first, returns_what_is_sent_and_then_the_payload],
    "other-payload": [
        payload_is_the_output,
        payload_is_always_the_whole,
        payload_is_one_chunk,
        payload_is_everybodys,
        all_gather_of_the_whole,
    ],
    "whole-for-parts": [
        wire_is_the_payload,
        payload_twice,
        sends_all_parts,
        n_steps_instead_of_one_less,
        large_n_approximation,
        one_rank_sends_too,
    ],
    "all-ranks-bytes": [adds_up_all_ranks, forgets_that_parts_travel, total_on_the_wires],
    "one-trip": [one_factor_for_all, all_reduce_in_n_minus_one_steps],
    "counted-twice": [
        the_all_reduce_factor_for_all,
        sent_and_received,
        twice_the_factor,
    ],
    "whole-tensors": [
        all_reduce_in_one_shot,
        all_reduce_sends_to_everybody,
        exchanges_in_powers_of_two,
    ],
    "wrong-type": [divides_with_a_slash, a_list, a_dict, wire_only],
    "wrong-length": [payload_wire_and_total],
    "raised": [knows_no_all_to_all],
    "returns-nothing": [prints_them],
}
