"""What transformers' config classes take for sizes that a config leaves out.

A config inside another is written without what equals its class's defaults, so sizes may be
missing there and nowhere else. Read from transformers 5.24; a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_FIELDS = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
)
_DERIVED = None
"""The class has no number: it takes query heads, or hidden size by heads."""


def _sizes(*values: int | None) -> Mapping[str, int]:
    given = zip(_FIELDS, values, strict=True)
    return MappingProxyType({name: value for name, value in given if value is not None})


CLASS_DEFAULTS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "llama": _sizes(32000, 4096, 11008, 32, 32, _DERIVED, _DERIVED),
        "mistral": _sizes(32000, 4096, 14336, 32, 32, 8, _DERIVED),
        "ministral3": _sizes(131072, 4096, 14336, 34, 32, 8, 128),
        "qwen2": _sizes(151936, 4096, 22016, 32, 32, 32, _DERIVED),
        "qwen2_vl_text": _sizes(152064, 8192, 29568, 80, 64, 8, _DERIVED),
        "qwen2_5_vl_text": _sizes(152064, 8192, 29568, 80, 64, 8, _DERIVED),
        "qwen3": _sizes(151936, 4096, 22016, 32, 32, 32, 128),
        "qwen3_vl_text": _sizes(151936, 4096, 22016, 32, 32, 32, 128),
        "gemma": _sizes(256000, 3072, 24576, 28, 16, 16, 256),
        "gemma2": _sizes(256000, 2304, 9216, 26, 8, 4, 256),
        "gemma3_text": _sizes(262208, 2304, 9216, 26, 8, 4, 256),
        "phi3": _sizes(32064, 3072, 8192, 32, 32, _DERIVED, _DERIVED),
        "cohere2": _sizes(256000, 8192, 22528, 40, 64, _DERIVED, _DERIVED),
    }
)
"""By `model_type` of the inner config."""
