"""Wrong solutions of `legal_tp_degrees`, by the diagnosis that each must get."""


def _rules(config, tp, *, skip=(), kv="even", widths=("mlp", "attention")):
    """What a student's loop finds; the switches are what is left out or done otherwise."""
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    mlp, group = config["intermediate_size"], config.get("group_size")
    found = []
    if heads % tp and "heads" not in skip:
        found.append("heads")
    refused = {
        "even": kv_heads % tp != 0 and tp % kv_heads != 0,
        "never copied": kv_heads % tp != 0,
        "copied anyhow": tp <= kv_heads and kv_heads % tp != 0,
        "unasked": False,
    }[kv]
    if refused:
        found.append("kv_heads")
    if mlp % tp and "mlp" not in skip:
        found.append("mlp")
    inputs = {"mlp": mlp, "attention": heads * config["head_dim"]}
    for name in widths:
        if group and inputs[name] % tp == 0 and inputs[name] // tp % group:
            found.append("quantisation_group")
            break
    return found


def _all(config, degrees, **switches):
    return {tp: _rules(config, tp, **switches) for tp in degrees}


def kv_heads_must_divide(config, degrees):
    return _all(config, degrees, kv="never copied")


def more_ranks_than_kv_heads_is_fine(config, degrees):
    return _all(config, degrees, kv="copied anyhow")


def looks_at_query_heads_alone(config, degrees):
    return _all(config, degrees, kv="unasked")


def forgets_the_query_heads(config, degrees):
    return _all(config, degrees, skip=("heads",))


def forgets_the_mlp(config, degrees):
    return _all(config, degrees, skip=("mlp",))


def knows_no_groups(config, degrees):
    return _all(config, degrees, widths=())


def asks_the_whole_widths(config, degrees):
    found = _all(config, degrees, widths=())
    group = config.get("group_size")
    for broken in found.values():
        if group and config["intermediate_size"] % group:
            broken.append("quantisation_group")
    return found


def asks_down_proj_alone(config, degrees):
    return _all(config, degrees, widths=("mlp",))


def asks_o_proj_alone(config, degrees):
    return _all(config, degrees, widths=("attention",))


def stops_at_the_first(config, degrees):
    return {tp: broken[:1] for tp, broken in _all(config, degrees).items()}


def elif_after_elif(config, degrees):
    found = {}
    for tp, broken in _all(config, degrees).items():
        found[tp] = []
        if broken:
            found[tp].append(broken[0])
    return found


def lists_the_broken_ones(config, degrees):
    return {tp: broken for tp, broken in _all(config, degrees).items() if broken}


def lists_the_legal_ones(config, degrees):
    return {tp: broken for tp, broken in _all(config, degrees).items() if not broken}


def a_list_of_lists(config, degrees):
    return list(_all(config, degrees).values())


WRONG = {
    "copies-refused": [kv_heads_must_divide],
    "any-copies": [more_ranks_than_kv_heads_is_fine],
    "kv-heads-ignored": [looks_at_query_heads_alone],
    "heads-ignored": [forgets_the_query_heads],
    "mlp-ignored": [forgets_the_mlp],
    "groups-ignored": [knows_no_groups, asks_the_whole_widths],
    "attention-forgotten": [asks_down_proj_alone],
    "mlp-forgotten": [asks_o_proj_alone],
    "first-reason-only": [stops_at_the_first, elif_after_elif],
    "legal-left-out": [lists_the_broken_ones],
    "illegal-left-out": [lists_the_legal_ones],
    "wrong-type": [a_list_of_lists],
}
