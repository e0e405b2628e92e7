"""What a model is, read from its Hugging Face config and from nothing else.

`ModelSpec` holds the numbers a layout, a loader and a decoder need. A config that asks for
something the decoder does not do is refused by the name of the field, never approximated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUPPORTED_MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")
SUPPORTED_ROPE_TYPES = ("default", "linear", "llama3", "yarn")

_EXPERT_FIELDS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_intermediate_size")
_LATENT_FIELDS = ("kv_lora_rank", "q_lora_rank")
_ROPE_SCALING_FIELDS = (
    "factor",
    "original_max_position_embeddings",
    "low_freq_factor",
    "high_freq_factor",
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "truncate",
)


class UnsupportedModelError(ValueError):
    """A config field with a value this project does not implement, or without one it needs."""

    def __init__(self, field: str, value: object, why: str) -> None:
        self.field = field
        self.value = value
        self.why = why
        super().__init__(f"config field {field} = {value!r}: {why}")

    def __reduce__(self) -> tuple[type[UnsupportedModelError], tuple[object, ...]]:
        return type(self), (self.field, self.value, self.why)


@dataclass(frozen=True)
class RopeScaling:
    """How rotary frequencies are stretched beyond the trained context.

    Field names are those of Hugging Face's `rope_scaling`; `low_freq_factor` and
    `high_freq_factor` belong to `llama3`, the rest below them to `yarn`.
    """

    rope_type: str
    factor: float
    original_max_position_embeddings: int
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True


@dataclass(frozen=True)
class ModelSpec:
    """A dense decoder of the Llama family. Sizes count elements; `dtype` names the file's."""

    model_type: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    tie_word_embeddings: bool = False
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling | None = None
    sliding_window: int | None = None
    max_position_embeddings: int = 2048
    hidden_act: str = "silu"
    bos_token_id: int | None = None
    eos_token_ids: tuple[int, ...] = ()
    dtype: str = "float32"

    @classmethod
    def from_hf(cls, config: Mapping[str, Any] | str | Path) -> ModelSpec:
        """Read a config: its mapping, its `config.json`, or the directory that holds one.

        Raises:
            UnsupportedModelError: names the field and the value that cannot be honoured.
            FileNotFoundError: there is no such file.
        """
        return _spec_from_config(config if isinstance(config, Mapping) else _read_config(config))

    @property
    def num_parameters(self) -> int:
        """Weights, biases and norms; tied embeddings are counted once."""
        hidden, width = self.hidden_size, self.intermediate_size
        q_size, kv_size = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        attention = hidden * (q_size + 2 * kv_size) + q_size * hidden
        attention += (q_size + 2 * kv_size) * self.qkv_bias + hidden * self.o_bias
        attention += 2 * self.head_dim * self.qk_norm
        mlp = 3 * hidden * width + (2 * width + hidden) * self.mlp_bias
        tables = 1 if self.tie_word_embeddings else 2
        layers = self.num_layers * (attention + mlp + 2 * hidden)
        return layers + tables * self.vocab_size * hidden + hidden

    def kv_bytes_per_token(self, bytes_per_element: float) -> float:
        """Bytes of keys and values that one token leaves in the cache, over all layers."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * bytes_per_element


def _read_config(path: str | Path) -> Mapping[str, Any]:
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    if not file.is_file():
        raise FileNotFoundError(f"no model config at {file}")
    config = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(config, Mapping):
        raise UnsupportedModelError(str(file), type(config).__name__, "a config is a JSON object")
    return config


def _spec_from_config(config: Mapping[str, Any]) -> ModelSpec:
    model_type = config.get("model_type")
    if model_type not in SUPPORTED_MODEL_TYPES:
        raise UnsupportedModelError(
            "model_type", model_type, f"supported are {', '.join(SUPPORTED_MODEL_TYPES)}"
        )
    _refuse_unsupported(config)
    num_heads = _positive(config, "num_attention_heads")
    hidden_size = _positive(config, "hidden_size")
    num_layers = _positive(config, "num_hidden_layers")
    max_positions = _positive(config, "max_position_embeddings")
    attention_bias = bool(config.get("attention_bias", False))
    if model_type == "mistral" and attention_bias:
        raise UnsupportedModelError("attention_bias", True, "Mistral layers have no bias")
    rope_theta, rope_scaling = _rope(config, max_positions)
    return ModelSpec(
        model_type=model_type,
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=_kv_heads(config, num_heads),
        head_dim=_head_dim(config, hidden_size, num_heads),
        intermediate_size=_positive(config, "intermediate_size"),
        vocab_size=_positive(config, "vocab_size"),
        tie_word_embeddings=bool(config.get("tie_word_embeddings", False)),
        qkv_bias=attention_bias or model_type == "qwen2",
        o_bias=attention_bias and model_type != "qwen2",
        mlp_bias=bool(config.get("mlp_bias", False)) and model_type == "llama",
        qk_norm=model_type == "qwen3",
        rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        rope_theta=rope_theta,
        rope_scaling=rope_scaling,
        sliding_window=_sliding_window(config, num_layers),
        max_position_embeddings=max_positions,
        bos_token_id=config.get("bos_token_id"),
        eos_token_ids=_token_ids(config.get("eos_token_id")),
        dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32"),
    )


def _refuse_unsupported(config: Mapping[str, Any]) -> None:
    for field in _EXPERT_FIELDS:
        if config.get(field):
            raise UnsupportedModelError(field, config[field], "mixture of experts is not supported")
    for field in _LATENT_FIELDS:
        if config.get(field):
            raise UnsupportedModelError(field, config[field], "latent attention is not supported")
    if config.get("quantization_config") is not None:
        method = config["quantization_config"]
        raise UnsupportedModelError("quantization_config", method, "load unquantised weights")
    activation = config.get("hidden_act", "silu")
    if activation != "silu":
        raise UnsupportedModelError("hidden_act", activation, "the gated MLP uses silu only")


def _positive(config: Mapping[str, Any], field: str) -> int:
    value = config.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UnsupportedModelError(field, value, "a positive whole number is needed")
    return value


def _kv_heads(config: Mapping[str, Any], num_heads: int) -> int:
    field = "num_key_value_heads"
    if config.get(field) is None and (field in config or config["model_type"] == "llama"):
        return num_heads
    kv_heads = _positive(config, field)
    if num_heads % kv_heads:
        raise UnsupportedModelError(field, kv_heads, f"{num_heads} attention heads must share them")
    return kv_heads


def _head_dim(config: Mapping[str, Any], hidden_size: int, num_heads: int) -> int:
    if config.get("head_dim") is not None:
        head_dim = _positive(config, "head_dim")
    elif config["model_type"] == "qwen3":
        raise UnsupportedModelError("head_dim", None, "Qwen3 does not derive it from hidden_size")
    else:
        head_dim = hidden_size // num_heads
        if head_dim * num_heads != hidden_size:
            raise UnsupportedModelError(
                "hidden_size", hidden_size, f"not a multiple of {num_heads} heads, and no head_dim"
            )
    if head_dim % 2:
        raise UnsupportedModelError("head_dim", head_dim, "rotary embeddings need it to be even")
    return head_dim


def _sliding_window(config: Mapping[str, Any], num_layers: int) -> int | None:
    kinds = set(config.get("layer_types") or ())
    if kinds - {"full_attention", "sliding_attention"} or len(kinds) > 1:
        raise UnsupportedModelError("layer_types", sorted(kinds), "all layers must be of one kind")
    if config["model_type"] == "llama" or kinds == {"full_attention"}:
        return None
    if config["model_type"] == "mistral":
        # Left out of the file, transformers' MistralConfig takes 4096; null means none.
        window = config.get("sliding_window", 4096)
    else:
        window = config.get("sliding_window") if config.get("use_sliding_window") else None
        if window is not None and not kinds:
            full_layers = config.get("max_window_layers", 28)
            if full_layers >= num_layers:
                return None
            if full_layers > 0:
                raise UnsupportedModelError(
                    "max_window_layers",
                    full_layers,
                    f"a window on only some of {num_layers} layers is not supported",
                )
    if window is None:
        return None
    return _positive({"sliding_window": window}, "sliding_window")


def _rope(config: Mapping[str, Any], max_positions: int) -> tuple[float, RopeScaling | None]:
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    if any(isinstance(value, Mapping) for value in rope.values()):
        raise UnsupportedModelError("rope_parameters", rope, "one rotary table for all layers")
    theta = rope.pop("rope_theta", None) or config.get("rope_theta") or 10000.0
    partial = rope.pop("partial_rotary_factor", None) or config.get("partial_rotary_factor") or 1.0
    if partial != 1.0:
        raise UnsupportedModelError("partial_rotary_factor", partial, "whole heads are rotated")
    old_name = rope.pop("type", None)
    rope_type = rope.pop("rope_type", None) or old_name or "default"
    if rope_type not in SUPPORTED_ROPE_TYPES:
        raise UnsupportedModelError(
            "rope_type", rope_type, f"supported are {', '.join(SUPPORTED_ROPE_TYPES)}"
        )
    if rope_type == "default":
        return float(theta), None
    for field, value in rope.items():
        if field not in _ROPE_SCALING_FIELDS:
            raise UnsupportedModelError(f"rope_scaling.{field}", value, "unknown to this project")
    required = ["factor"]
    if rope_type == "llama3":
        required += ["low_freq_factor", "high_freq_factor", "original_max_position_embeddings"]
    for field in required:
        if rope.get(field) is None:
            raise UnsupportedModelError(f"rope_scaling.{field}", None, f"{rope_type} needs it")
    given = {field: value for field, value in rope.items() if value is not None}
    original = config.get("original_max_position_embeddings") or max_positions
    given.setdefault("original_max_position_embeddings", original)
    return float(theta), RopeScaling(rope_type=rope_type, **given)


def _token_ids(value: int | list[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)
