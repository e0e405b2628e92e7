"""Solutions of predict_collectives as a class would hand them in."""


def forgets_the_embedding(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 2 * num_layers if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": n * batch * hidden_size * bytes_per_element}


def forgets_one_rank(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers
    return {"all_reduces": n, "payload_bytes": n * batch * hidden_size * bytes_per_element}


def one_a_layer(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + num_layers if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": n * batch * hidden_size * bytes_per_element}


def counts_every_ranks_bytes(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": n * tp * batch * hidden_size * bytes_per_element}


def cuts_the_payload(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": n * batch * hidden_size * bytes_per_element // tp}


def floats(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    payload = batch * hidden_size * bytes_per_element * 8 / 8
    return {"all_reduces": n, "payload_bytes": n * payload}


def bytes_of_one(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    payload = batch * hidden_size * bytes_per_element if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": payload}


def forgets_the_batch(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": n * hidden_size * bytes_per_element}


def elements_not_bytes(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": n * batch * hidden_size}


def wire_bytes_of_a_ring(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    payload = batch * hidden_size * bytes_per_element
    return {"all_reduces": n, "payload_bytes": n * payload * 2 * (tp - 1) // tp}


def also_the_lm_head(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 2 + 2 * num_layers if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": n * batch * hidden_size * bytes_per_element}


def a_tuple(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    return n, n * batch * hidden_size * bytes_per_element


def another_key(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    return {"all_reduce": n, "payload_bytes": n * batch * hidden_size * bytes_per_element}


def one_key_missing(num_layers, tp, batch, hidden_size, bytes_per_element):
    return {"all_reduces": 1 + 2 * num_layers if tp > 1 else 0}


def one_key_too_many(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    payload = batch * hidden_size * bytes_per_element
    return {"all_reduces": n, "payload_bytes": n * payload, "payload": payload}


def nothing_but_bytes_at_one_rank(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers
    payload = n * batch * hidden_size * bytes_per_element
    return {"all_reduces": n if tp > 1 else 0, "payload_bytes": payload}


def one_all_reduce_for_q_k_v_too(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 3 * num_layers if tp > 1 else 0
    return {"all_reduces": n, "payload_bytes": n * batch * hidden_size * bytes_per_element}


def as_text(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    payload = n * batch * hidden_size * bytes_per_element
    return {"all_reduces": f"{n}", "payload_bytes": f"{payload} bytes"}


def prints_it(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = 1 + 2 * num_layers if tp > 1 else 0
    payload = n * batch * hidden_size * bytes_per_element
    print({"all_reduces": n, "payload_bytes": payload})


def divides_by_zero(num_layers, tp, batch, hidden_size, bytes_per_element):
    n = (1 + 2 * num_layers) * (tp - 1) // (tp - 1)
    return {"all_reduces": n, "payload_bytes": n * batch * hidden_size * bytes_per_element}


def went_through_part_by_part(num_layers, tp, batch, hidden_size, bytes_per_element):
    from collections import Counter

    found = Counter(all_reduces=0, payload_bytes=0)
    parts = ["embedding", *["query, key, value", "output", "gate, up", "down"] * num_layers]
    for part in parts:
        if tp > 1 and part in ("embedding", "output", "down"):
            found["all_reduces"] += 1
            found["payload_bytes"] += batch * hidden_size * bytes_per_element
    return found


def payload_first_with_a_bool(num_layers, tp, batch, hidden_size, bytes_per_element):
    count = (tp > 1) * sum([1, *[2] * num_layers])
    one = batch * hidden_size * bytes_per_element
    return {"payload_bytes": one * count, "all_reduces": count}


WRONG = [
    forgets_the_embedding,
    forgets_one_rank,
    one_a_layer,
    counts_every_ranks_bytes,
    cuts_the_payload,
    floats,
    bytes_of_one,
    forgets_the_batch,
    elements_not_bytes,
    wire_bytes_of_a_ring,
    also_the_lm_head,
    a_tuple,
    another_key,
    one_key_missing,
    one_key_too_many,
    nothing_but_bytes_at_one_rank,
    one_all_reduce_for_q_k_v_too,
    as_text,
    prints_it,
    divides_by_zero,
]
RIGHT = [went_through_part_by_part, payload_first_with_a_bool]
