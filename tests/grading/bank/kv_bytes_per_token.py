"""Wrong solutions of `kv_bytes_per_token`, by the diagnosis that each must get."""


def counts_query_heads(config):
    if "kv_lora_rank" in config:
        return _latent(config)
    return 4 * _layers(config) * config["num_attention_heads"] * _dim(config)


def multiplies_kv_heads_by_their_group(config):
    if "kv_lora_rank" in config:
        return _latent(config)
    group = config["num_attention_heads"] // _heads(config)
    return 4 * _layers(config) * _heads(config) * _dim(config) * group


def keys_only(config):
    if "kv_lora_rank" in config:
        return _layers(config) * (config["kv_lora_rank"] + config["qk_rope_head_dim"])
    return 2 * _layers(config) * _heads(config) * _dim(config)


def counts_in_fp8(config):
    elements = 0
    for _ in range(_layers(config)):
        if "kv_lora_rank" in config:
            elements += config["kv_lora_rank"] + config["qk_rope_head_dim"]
        else:
            elements += 2 * _heads(config) * _dim(config)
    return elements


def one_layer(config):
    if "kv_lora_rank" in config:
        return 2 * (config["kv_lora_rank"] + config["qk_rope_head_dim"])
    return 4 * _heads(config) * _dim(config)


def divides_by_layers_again(config):
    return _right(config) // _layers(config)


def always_divides_the_hidden_size(config):
    if "kv_lora_rank" in config:
        return _latent(config)
    dim = config["hidden_size"] // config["num_attention_heads"]
    return 4 * _layers(config) * _heads(config) * dim


def knows_no_head_dim(config):
    if "kv_lora_rank" in config:
        return _latent(config)
    return (
        4
        * _layers(config)
        * _heads(config)
        * (config["hidden_size"] // config["num_attention_heads"])
    )


def never_heard_of_latents(config):
    return 4 * _layers(config) * _heads(config) * _dim(config)


def unpacks_the_latent(config):
    if "kv_lora_rank" not in config:
        return _right(config)
    key = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
    return 2 * _layers(config) * _heads(config) * (key + config["v_head_dim"])


def keys_as_wide_as_values(config):
    if "kv_lora_rank" not in config:
        return _right(config)
    key = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
    return 2 * 2 * _layers(config) * _heads(config) * key


def latent_for_key_and_value(config):
    if "kv_lora_rank" not in config:
        return _right(config)
    return 4 * _layers(config) * (config["kv_lora_rank"] + config["qk_rope_head_dim"])


def rank_only(config):
    if "kv_lora_rank" not in config:
        return _right(config)
    return 2 * _layers(config) * config["kv_lora_rank"]


def every_layer_grows(config):
    if "kv_lora_rank" in config:
        return _latent(config)
    return 4 * config["num_hidden_layers"] * _heads(config) * _dim(config)


def ignores_layer_types(config):
    config = {k: v for k, v in config.items() if k != "layer_types"}
    return _right(config)


def takes_the_sliding_layers(config):
    if "layer_types" not in config:
        return _right(config)
    layers = sum(kind == "sliding_attention" for kind in config["layer_types"])
    return 4 * layers * _heads(config) * _dim(config)


def a_float(config):
    return float(_right(config))


def nothing(config):
    _right(config)


def _right(config):
    if "kv_lora_rank" in config:
        return _latent(config)
    return 4 * _layers(config) * _heads(config) * _dim(config)


def _latent(config):
    return 2 * _layers(config) * (config["kv_lora_rank"] + config["qk_rope_head_dim"])


def _layers(config):
    if "layer_types" in config:
        return config["layer_types"].count("full_attention")
    return config["num_hidden_layers"]


def _heads(config):
    return config.get("num_key_value_heads", config["num_attention_heads"])


def _dim(config):
    return config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])


WRONG = {
    "query-heads": [counts_query_heads, multiplies_kv_heads_by_their_group],
    "one-byte-or-half": [keys_only, counts_in_fp8],
    "layers-forgotten": [one_layer, divides_by_layers_again],
    "head-dim-guessed": [always_divides_the_hidden_size, knows_no_head_dim],
    "latent-as-heads": [never_heard_of_latents, unpacks_the_latent, keys_as_wide_as_values],
    "latent-twice": [latent_for_key_and_value],
    "rope-forgotten": [rank_only],
    "windows-counted": [every_layer_grows, ignores_layer_types],
    "windows-instead": [takes_the_sliding_layers],
    "wrong-type": [a_float],
    "returns-nothing": [nothing],
}
