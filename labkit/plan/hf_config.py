"""A Hugging Face config read as a ModelSpec, or refused by the name of the field that stops it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from labkit.plan import (
    cross_attention_families,
    dense_families,
    early_families,
    hybrid_families,
    latent_families,
    moe_families,
    own_code_families,
)
from labkit.plan.config_fields import ConfigFields, UnsupportedModelError, is_whole
from labkit.plan.decoder_config import read_config_file as _read_json
from labkit.plan.family_assembly import read_dtype
from labkit.plan.model import ModelSpec
from labkit.plan.quantization import quantize
from labkit.plan.text_config import unwrap

__all__ = ["READERS", "Reader", "read_config_file", "read_model"]

Reader = Callable[[ConfigFields], ModelSpec]


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        **dense_families.READERS,
        **early_families.READERS,
        **own_code_families.READERS,
        **cross_attention_families.READERS,
        **moe_families.READERS,
        **latent_families.READERS,
        **hybrid_families.READERS,
    }
)
"""How to read each `model_type`."""

_QUANTIZATION_FILE = "hf_quant_config.json"
_SIZE_WORDS = (
    *("size", "dim", "head", "layer", "expert", "rank", "embd", "inner", "window"),
    *("expan", "conv", "state"),
)
_LARGEST_SIZE = 2**32


def read_config_file(path: str | Path) -> Mapping[str, Any]:
    """The mapping in a `config.json`, given by its own path or its directory's.

    A directory may also hold NVIDIA Model Optimizer's `hf_quant_config.json`; it counts as the
    config's quantisation where that names none.

    Raises FileNotFoundError, or ValueError for a file that holds no JSON object.
    """
    config = _read_json(path)
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    beside = folder / _QUANTIZATION_FILE
    if not beside.is_file() or config.get("quantization_config"):
        return config
    return {**config, "quantization_config": _read_json(beside)}


def read_model(config: Mapping[str, Any]) -> ModelSpec:
    """The model a config describes: its text part, where it also has others.

    Raises:
        UnsupportedModelError: names the field and the value that cannot be sized.
    """
    fields, notes = unwrap(config)
    _refuse_absurd_sizes(fields)
    if fields.flag("is_encoder_decoder"):
        raise fields.refuse("is_encoder_decoder", "decoders without an encoder can be sized")
    model_type = fields.values.get("model_type")
    reader = READERS.get(model_type) if isinstance(model_type, str) else None
    if reader is None:
        raise _unknown_model_type(fields)
    spec = quantize(reader(fields), fields)
    return replace(spec, notes=(*notes, *_dtype_notes(fields), *spec.notes))


def _dtype_notes(fields: ConfigFields) -> tuple[str, ...]:
    """What engines do with weights whose dtype is not said, or is wider than they compute in."""
    if not fields.has("dtype") and not fields.has("torch_dtype"):
        return ("the config gives no dtype: weights are taken to be in bfloat16",)
    if read_dtype(fields) == "float32":
        return ("stored in float32; engines load it in 16 bits unless told otherwise",)
    return ()


def _refuse_absurd_sizes(fields: ConfigFields) -> None:
    """No size of a model is beyond 2**32; such a number would only overflow further on.

    Sizes of parts are looked at too, and lists of sizes.
    """
    for name, value in fields.values.items():
        if isinstance(value, Mapping):
            _refuse_absurd_sizes(ConfigFields(value, f"{fields.prefix}{name}."))
        if not isinstance(name, str) or not any(word in name for word in _SIZE_WORDS):
            continue
        sizes = value if isinstance(value, list | tuple) else (value,)
        if any(is_whole(size) and size > _LARGEST_SIZE for size in sizes):
            raise fields.refuse(name, f"sizes are at most {_LARGEST_SIZE}")


def _unknown_model_type(fields: ConfigFields) -> UnsupportedModelError:
    given = fields.values.get("model_type")
    if not isinstance(given, str):
        return fields.refuse("model_type", "the name of a model family is needed, such as llama")
    near = difflib.get_close_matches(given.lower(), READERS, n=3, cutoff=0.5)
    some = "llama, qwen3, mixtral, deepseek_v3"
    known = f"near it: {', '.join(near)}" if near else f"among the {len(READERS)} are {some}"
    return fields.refuse("model_type", f"no such family is known here; {known}")
