"""Exercise: the bytes that one token leaves in the KV cache, from a model's config."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from course.exercises.plain_cases import Wrong, plain_case
from course.grading.exercise import Case, Exercise

MESSAGES = {
    "query-heads": "The heads counted are the query heads. Several of them share one KV head, and "
    "only KV heads have keys and values to keep.",
    "layers-forgotten": "This is what one layer keeps. Every layer has a cache of its own.",
    "head-dim-guessed": "The size of a head was taken as hidden size over heads. This config says "
    "what it is, and it is something else.",
    "latent-as-heads": "The cache is counted as keys and values of heads. This model keeps one "
    "compressed vector a token, from which every head makes its own.",
    "latent-twice": "The latent is counted as a key and once more as a value. There is one vector, "
    "and both are made from it.",
    "rope-forgotten": "The part of the key that carries the position is not in the latent. It is "
    "kept beside it.",
    "windows-counted": "Layers with a sliding window are in it. They forget old tokens, so beyond "
    "their window one token more leaves nothing there.",
    "windows-instead": "These are the layers that forget. The cache grows in the others.",
    "one-byte-or-half": "This is half of it. A head keeps a key and a value of each token, and "
    "each element takes two bytes.",
}


def _right(config: Mapping[str, Any]) -> int:
    layers = _growing(config)
    if "kv_lora_rank" in config:
        return 2 * layers * (config["kv_lora_rank"] + config["qk_rope_head_dim"])
    return 2 * 2 * layers * _kv_heads(config) * _head_dim(config)


def _growing(config: Mapping[str, Any]) -> int:
    kinds = config.get("layer_types")
    return kinds.count("full_attention") if kinds else config["num_hidden_layers"]


def _kv_heads(config: Mapping[str, Any]) -> int:
    return config.get("num_key_value_heads", config["num_attention_heads"])


def _head_dim(config: Mapping[str, Any]) -> int:
    return config.get("head_dim", _guess(config))


def _guess(config: Mapping[str, Any]) -> int:
    return config["hidden_size"] // config["num_attention_heads"]


def _wrong(config: Mapping[str, Any]) -> Wrong:
    right, layers = _right(config), _growing(config)
    heads, dim = _kv_heads(config), _head_dim(config)
    if "kv_lora_rank" in config:
        yield "latent-as-heads", 2 * 2 * layers * heads * dim
        whole = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
        yield "latent-as-heads", 2 * layers * heads * (whole + config["v_head_dim"])
        yield "latent-as-heads", 2 * 2 * layers * heads * whole
        yield "latent-twice", 2 * right
        yield "rope-forgotten", 2 * layers * config["kv_lora_rank"]
    else:
        yield "query-heads", right // heads * config["num_attention_heads"]
        yield "head-dim-guessed", right // dim * _guess(config)
    yield "layers-forgotten", right // layers
    if "layer_types" in config:
        yield "windows-counted", right // layers * config["num_hidden_layers"]
        yield "windows-instead", right // layers * config["layer_types"].count("sliding_attention")
    yield "one-byte-or-half", right // 2


def _case(name: str, config: dict[str, Any]) -> Case:
    return plain_case(name, {"config": config}, _right(config), _wrong(config), MESSAGES)


def _grouped(layers: int, hidden: int, heads: int, kv_heads: int, **more: Any) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        **more,
    }


def _own_heads(layers: int, hidden: int, heads: int) -> dict[str, Any]:
    config = _grouped(layers, hidden, heads, heads)
    del config["num_key_value_heads"]
    return config


def _latent(layers: int, rank: int, rope: int) -> dict[str, Any]:
    more = {"kv_lora_rank": rank, "qk_rope_head_dim": rope}
    more |= {"qk_nope_head_dim": 128, "v_head_dim": 128}
    return _grouped(layers, 7168, 128, 128, **more)


def _windows(layers: int, every: int, kv_heads: int) -> dict[str, Any]:
    kinds = [
        "full_attention" if index % every == every - 1 else "sliding_attention"
        for index in range(layers)
    ]
    more = {"head_dim": 64, "sliding_window": 128, "layer_types": kinds}
    return _grouped(layers, 2880, 60, kv_heads, **more)


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("the 72B of the lesson", _grouped(80, 8192, 64, 8)),
        _case("a head size of its own", _grouped(64, 5120, 64, 8, head_dim=128)),
        _case("a latent", _latent(61, 512, 64)),
        _case("every third layer keeps all", _windows(36, 3, 6)),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)
    layers = 3 * random.randint(7, 30)
    return (
        _case("grouped", _grouped(layers, 6144, 48, random.choice([4, 6, 12]))),
        _case("one KV head", _grouped(layers + 1, 4544, 71, 1, head_dim=64)),
        _case(
            "another head size", _grouped(layers, 3072, 24, 8, head_dim=random.choice([96, 160]))
        ),
        _case("each its own", _own_heads(layers, 2560, 20)),
        _case("another latent", _latent(layers, random.choice([256, 384]), 32)),
        _case("every fifth layer keeps all", _windows(5 * random.randint(7, 12), 5, 4)),
    )


EXERCISE = Exercise(
    name="kv_bytes_per_token",
    chapter="03_layout_planning",
    title="What a token leaves behind",
    function="kv_bytes_per_token",
    parameters=("config",),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
