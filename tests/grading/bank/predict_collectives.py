"""Wrong predictions of a step's collectives, each under the diagnosis it must get."""


def answer(all_reduces, payload_each):
    return {"all_reduces": all_reduces, "payload_bytes": all_reduces * payload_each}


def one_rank_talks_too(num_layers, tp, batch, hidden_size, bytes_per_element):
    return answer(1 + 2 * num_layers, batch * hidden_size * bytes_per_element)


def one_rank_calls_without_payload(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = 2 * num_layers + 1
    payload = calls * batch * hidden_size * bytes_per_element if tp > 1 else 0
    return {"all_reduces": calls, "payload_bytes": payload}


def one_a_layer(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    return answer(1 + num_layers, batch * hidden_size * bytes_per_element)


def one_a_layer_and_no_embedding(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = num_layers if tp > 1 else 0
    return {
        "all_reduces": calls,
        "payload_bytes": calls * batch * hidden_size * bytes_per_element,
    }


def no_embedding(num_layers, tp, batch, hidden_size, bytes_per_element):
    return answer(2 * num_layers * (tp > 1), batch * hidden_size * bytes_per_element)


def attention_and_mlp_in_a_loop(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = payload = 0
    if tp > 1:
        for _ in range(num_layers):
            for _ in ("attention", "mlp"):
                calls += 1
                payload += batch * hidden_size * bytes_per_element
    return {"all_reduces": calls, "payload_bytes": payload}


def forward_and_backward(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    return answer(2 * (1 + 2 * num_layers), batch * hidden_size * bytes_per_element)


def backward_in_a_second_pass(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = 0
    for _ in ("forward", "backward"):
        calls += 1 + 2 * num_layers
    calls = 0 if tp == 1 else calls
    return answer(calls, batch * hidden_size * bytes_per_element)


def four_a_layer(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    return answer(4 * num_layers + 1, batch * hidden_size * bytes_per_element)


def four_a_layer_and_no_embedding(num_layers, tp, batch, hidden_size, bytes_per_element):
    products = ("qkv", "o", "gate_up", "down")
    calls = num_layers * len(products) if tp > 1 else 0
    return answer(calls, batch * hidden_size * bytes_per_element)


def seven_a_layer(num_layers, tp, batch, hidden_size, bytes_per_element):
    matrices = ("q", "k", "v", "o", "gate", "up", "down")
    calls = 1 + num_layers * len(matrices) if tp > 1 else 0
    return answer(calls, batch * hidden_size * bytes_per_element)


def seven_a_layer_and_no_embedding(num_layers, tp, batch, hidden_size, bytes_per_element):
    return answer(7 * num_layers * (tp > 1), batch * hidden_size * bytes_per_element)


def with_the_samplers_gather(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    return answer(2 + 2 * num_layers, batch * hidden_size * bytes_per_element)


def embedding_and_head(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = ("embedding", "head") * (tp > 1) + ("attention", "mlp") * num_layers * (tp > 1)
    return answer(len(calls), batch * hidden_size * bytes_per_element)


def once_for_each_rank(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    return answer(tp * (1 + 2 * num_layers), batch * hidden_size * bytes_per_element)


def counted_rank_by_rank(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = sum(1 + 2 * num_layers for _ in range(tp)) if tp > 1 else 0
    return answer(calls, batch * hidden_size * bytes_per_element)


def a_share_of_the_payload(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    return answer(1 + 2 * num_layers, batch * hidden_size * bytes_per_element // tp)


def a_share_of_the_hidden_size(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = 1 + 2 * num_layers if tp > 1 else 0
    return answer(calls, batch * (hidden_size / tp) * bytes_per_element if calls else 0)


def payload_of_all_ranks(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    return answer(1 + 2 * num_layers, tp * batch * hidden_size * bytes_per_element)


def payload_summed_over_ranks(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = 1 + 2 * num_layers if tp > 1 else 0
    each = sum(batch * hidden_size * bytes_per_element for _ in range(tp))
    return {"all_reduces": calls, "payload_bytes": calls * each}


def payload_of_one_call(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return {"all_reduces": 0, "payload_bytes": 0}
    each = batch * hidden_size * bytes_per_element
    return {"all_reduces": 1 + 2 * num_layers, "payload_bytes": each}


def payload_of_one_call_and_one_rank(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = 1 + 2 * num_layers if tp > 1 else 0
    each = batch * hidden_size * bytes_per_element / tp if tp > 1 else 0
    return {"all_reduces": calls, "payload_bytes": each}


def ring_bytes(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = 1 + 2 * num_layers if tp > 1 else 0
    payload = calls * batch * hidden_size * bytes_per_element
    return {"all_reduces": calls, "payload_bytes": 2 * (tp - 1) * payload // tp}


def ring_bytes_as_a_fraction(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    each = 2 * (tp - 1) / tp * batch * hidden_size * bytes_per_element
    return answer(1 + 2 * num_layers, each)


def elements(num_layers, tp, batch, hidden_size, bytes_per_element):
    return answer((1 + 2 * num_layers) * (tp > 1), batch * hidden_size)


def elements_by_division(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = 1 + 2 * num_layers if tp > 1 else 0
    payload = calls * batch * hidden_size * bytes_per_element
    return {"all_reduces": calls, "payload_bytes": payload // bytes_per_element}


def one_sequence(num_layers, tp, batch, hidden_size, bytes_per_element):
    return answer((1 + 2 * num_layers) * (tp > 1), hidden_size * bytes_per_element)


def payload_per_token(num_layers, tp, batch, hidden_size, bytes_per_element):
    if tp == 1:
        return answer(0, 0)
    payload = (1 + 2 * num_layers) * batch * hidden_size * bytes_per_element
    return {"all_reduces": 1 + 2 * num_layers, "payload_bytes": payload / batch}


def pair(num_layers, tp, batch, hidden_size, bytes_per_element):
    calls = 1 + 2 * num_layers if tp > 1 else 0
    return calls, calls * batch * hidden_size * bytes_per_element


def number_alone(num_layers, tp, batch, hidden_size, bytes_per_element):
    return 1 + 2 * num_layers if tp > 1 else 0


WRONG = {
    "counted-at-one-rank": [one_rank_talks_too, one_rank_calls_without_payload],
    "one-per-layer": [one_a_layer, one_a_layer_and_no_embedding],
    "no-embedding": [no_embedding, attention_and_mlp_in_a_loop],
    "backward-counted": [forward_and_backward, backward_in_a_second_pass],
    "four-per-layer": [four_a_layer, four_a_layer_and_no_embedding],
    "one-per-matrix": [seven_a_layer, seven_a_layer_and_no_embedding],
    "counts-the-sampler": [with_the_samplers_gather, embedding_and_head],
    "times-tp": [once_for_each_rank, counted_rank_by_rank],
    "payload-divided-by-tp": [a_share_of_the_payload, a_share_of_the_hidden_size],
    "payload-times-tp": [payload_of_all_ranks, payload_summed_over_ranks],
    "payload-of-one": [payload_of_one_call, payload_of_one_call_and_one_rank],
    "wire-bytes": [ring_bytes, ring_bytes_as_a_fraction],
    "payload-in-elements": [elements, elements_by_division],
    "payload-of-one-sequence": [one_sequence, payload_per_token],
    "wrong-type": [pair, number_alone],
}
