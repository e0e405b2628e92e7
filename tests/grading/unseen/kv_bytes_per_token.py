"""Solutions of kv_bytes_per_token as a class would hand them in."""


def textbook_formula(config):
    head_dim = config["hidden_size"] / config["num_attention_heads"]
    return 2 * config["num_hidden_layers"] * config["num_attention_heads"] * head_dim * 2


def latent_over_all_heads(config):
    layers = config["num_hidden_layers"]
    if "kv_lora_rank" in config:
        width = config["kv_lora_rank"] + config["qk_rope_head_dim"]
        return 2 * layers * width * config["num_attention_heads"]
    kv = config.get("num_key_value_heads", config["num_attention_heads"])
    return 4 * layers * kv * config.get("head_dim", config["hidden_size"] // kv)


def asks_for_every_field(config):
    return 4 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]


def in_kibibytes(config):
    kv = config.get("num_key_value_heads") or config["num_attention_heads"]
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return config["num_hidden_layers"] * kv * dim * 4 // 1024


def layer_by_layer(config):
    heads = config["num_attention_heads"]
    kinds = config.get("layer_types", ["full_attention"] * config["num_hidden_layers"])
    total = 0
    for kind in kinds:
        if kind == "sliding_attention":
            continue
        if "kv_lora_rank" in config:
            elements = config["kv_lora_rank"] + config["qk_rope_head_dim"]
        else:
            dim = config.get("head_dim", config["hidden_size"] // heads)
            elements = 2 * config.get("num_key_value_heads", heads) * dim
        total += elements * 2
    return total


def with_match(config):
    layers = config["num_hidden_layers"]
    match config:
        case {"kv_lora_rank": rank, "qk_rope_head_dim": rope}:
            per_layer = rank + rope
        case _:
            heads = config["num_attention_heads"]
            dim = config.get("head_dim") or config["hidden_size"] // heads
            per_layer = 2 * dim * (config.get("num_key_value_heads") or heads)
    if kinds := config.get("layer_types"):
        layers = sum(1 for kind in kinds if kind.startswith("full"))
    return layers * per_layer * 2


WRONG = [textbook_formula, latent_over_all_heads, asks_for_every_field, in_kibibytes]
RIGHT = [layer_by_layer, with_match]
