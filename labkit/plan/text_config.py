"""The text part of a config that also describes vision, speech or an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labkit.plan.config_fields import ConfigFields, UnsupportedModelError

TEXT_FIELDS = ("text_config", "llm_config", "language_config", "thinker_config")
"""What the decoder's own config is called inside another, in the order they are looked for."""

_INHERITED = ("dtype", "torch_dtype", "quantization_config", "tie_word_embeddings")
_DEEPEST = 3


def unwrap(config: Mapping[str, Any]) -> tuple[ConfigFields, tuple[str, ...]]:
    """The fields of the text decoder, and what was left out to get there.

    What the outer config says of all parts (its type, its quantisation) holds for the text part
    where that says nothing itself.

    Raises:
        UnsupportedModelError: the text part is no JSON object.
    """
    if not isinstance(config, Mapping):
        raise UnsupportedModelError("config", config, "a JSON object is needed")
    fields, left_out = ConfigFields(config), list[str]()
    for _ in range(_DEEPEST):
        inner = next((name for name in TEXT_FIELDS if fields.has(name)), None)
        if inner is None:
            break
        values = dict(fields.nested(inner))
        left_out += [
            name
            for name, value in fields.values.items()
            if name.endswith("_config") and isinstance(value, Mapping) and value
            if name not in (inner, "quantization_config", "generation_config")
        ]
        for name in _INHERITED:
            if values.get(name) is None and fields.has(name):
                values[name] = fields.values[name]
        fields = ConfigFields(values, f"{fields.prefix}{inner}.")
    if not left_out:
        return fields, ()
    return fields, (f"only the text decoder is sized; left out: {', '.join(left_out)}",)
