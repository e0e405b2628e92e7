"""Solutions of legal_tp_degrees as a class would hand them in."""


def true_or_false(config, degrees):
    return {tp: config["num_attention_heads"] % tp == 0 for tp in degrees}


def strings_not_lists(config, degrees):
    found = {}
    for tp in degrees:
        found[tp] = []
        if config["num_attention_heads"] % tp:
            found[tp] = "heads"
    return found


def sets(config, degrees):
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    return {
        tp: {"heads"} if heads % tp else {"kv_heads"} if kv_heads % tp else set() for tp in degrees
    }


def groups_of_the_hidden_size(config, degrees):
    found = {}
    for tp in degrees:
        rules = []
        if config["num_attention_heads"] % tp:
            rules += ["heads"]
        if config["num_key_value_heads"] % tp:
            rules += ["kv_heads"]
        if config["intermediate_size"] % tp:
            rules += ["mlp"]
        if "group_size" in config and config["intermediate_size"] / tp % config["group_size"]:
            rules += ["quantisation_group"]
        found[tp] = rules
    return found


def a_table_of_tests(config, degrees):
    heads, kv, mlp = (
        config[field]
        for field in ("num_attention_heads", "num_key_value_heads", "intermediate_size")
    )
    group = config.get("group_size", 0)

    def cut(size, tp):
        return group and size % tp == 0 and (size // tp) % group

    tests = {
        "heads": lambda tp: heads % tp,
        "kv_heads": lambda tp: kv % tp and tp % kv,
        "mlp": lambda tp: mlp % tp,
        "quantisation_group": lambda tp: cut(mlp, tp) or cut(heads * config["head_dim"], tp),
    }
    return {tp: [name for name, test in tests.items() if test(tp)] for tp in degrees}


def by_greatest_common_divisors(config, degrees):
    from math import gcd

    found = {}
    for tp in degrees:
        kv = config["num_key_value_heads"]
        broken = []
        if gcd(config["num_attention_heads"], tp) != tp:
            broken.append("heads")
        if gcd(kv, tp) not in (kv, tp):
            broken.append("kv_heads")
        if gcd(config["intermediate_size"], tp) != tp:
            broken.append("mlp")
        for inputs in (
            config["intermediate_size"],
            config["num_attention_heads"] * config["head_dim"],
        ):
            group = config.get("group_size")
            if group and not inputs % tp and inputs // tp % group:
                broken.append("quantisation_group")
                break
        found[tp] = broken
    return found


WRONG = [true_or_false, strings_not_lists, sets, groups_of_the_hidden_size]
RIGHT = [a_table_of_tests, by_greatest_common_divisors]
