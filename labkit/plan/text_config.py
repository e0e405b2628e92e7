"""The text part of a config that also describes vision, speech or an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from labkit.plan.class_defaults import CLASS_DEFAULTS
from labkit.plan.config_fields import ConfigFields, UnsupportedModelError

TEXT_FIELDS = ("text_config", "llm_config", "language_config", "thinker_config")
"""What the decoder's own config is called inside another, in the order they are looked for."""

_INHERITED = (
    *("dtype", "torch_dtype", "quantization_config", "compression_config"),
    "tie_word_embeddings",
)
_OTHER_PARTS = (
    *("vision", "visual", "image", "video", "audio", "speech", "talker", "token2wav", "code2wav"),
    *("projector", "perceiver", "vq", "encoder", "aligner"),
)
_DEEPEST = 3

_INNER_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "aya_vision": "cohere2",
        "cohere2_vision": "cohere2",
        "gemma3": "gemma3_text",
        "gemma4": "gemma4_text",
        "idefics3": "llama",
        "llama4": "llama4_text",
        "llava": "llama",
        "llava_next": "llama",
        "mistral3": "mistral",
        "paligemma": "gemma",
        "qwen2_vl": "qwen2_vl_text",
        "qwen2_5_vl": "qwen2_5_vl_text",
        "qwen3_vl": "qwen3_vl_text",
        "qwen3_vl_moe": "qwen3_vl_moe_text",
        "smolvlm": "llama",
    }
)
"""The type of the inner config where it does not say: its class's default."""


def unwrap(config: Mapping[str, Any]) -> tuple[ConfigFields, tuple[str, ...]]:
    """The fields of the text decoder, and what a reader should know of how they were found.

    What the outer config says of all parts (its dtype, its quantisation) holds for the text part
    where that says nothing itself. Sizes the inner one leaves out are its class's defaults.

    Raises:
        UnsupportedModelError: the config, or the text part of it, is no JSON object.
    """
    if not isinstance(config, Mapping):
        raise UnsupportedModelError("config", config, "a JSON object is needed")
    fields, left_out = ConfigFields(config), _other_parts(config)
    for _ in range(_DEEPEST):
        inner = next((name for name in TEXT_FIELDS if fields.nested(name)), None)
        if inner is None:
            break
        values = _inherit(fields, dict(fields.nested(inner)))
        left_out += _other_parts(values)
        fields = ConfigFields(values, f"{fields.prefix}{inner}.")
    fields, defaults = _with_class_defaults(fields)
    notes = []
    if left_out:
        notes.append(f"only the text decoder is sized; left out: {', '.join(left_out)}")
    if defaults:
        notes.append(f"left out of the config, so its class's defaults: {', '.join(defaults)}")
    return fields, tuple(notes)


def _other_parts(values: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, value in values.items()
        if isinstance(name, str) and name.endswith("_config") and isinstance(value, Mapping)
        if value and any(word in name for word in _OTHER_PARTS)
    ]


def _inherit(outer: ConfigFields, values: dict[str, Any]) -> dict[str, Any]:
    for name in _INHERITED:
        if values.get(name) is None and outer.has(name):
            values[name] = outer.values[name]
    if values.get("model_type") is None:
        outer_type = outer.values.get("model_type")
        if isinstance(outer_type, str) and outer_type in _INNER_TYPES:
            values["model_type"] = _INNER_TYPES[outer_type]
    return values


def _with_class_defaults(fields: ConfigFields) -> tuple[ConfigFields, list[str]]:
    """Only a config inside another is written without what its class has anyway."""
    model_type = fields.values.get("model_type")
    if not fields.prefix or not isinstance(model_type, str):
        return fields, []
    known = CLASS_DEFAULTS.get(model_type, {})
    missing = {name: value for name, value in known.items() if name not in fields.values}
    if not missing:
        return fields, []
    return ConfigFields({**fields.values, **missing}, fields.prefix), list(missing)
