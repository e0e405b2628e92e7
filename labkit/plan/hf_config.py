"""A Hugging Face config read as a ModelSpec, or refused by the name of the field that stops it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from labkit.plan import dense_families, early_families
from labkit.plan.config_fields import ConfigFields, UnsupportedModelError
from labkit.plan.decoder_config import read_config_file
from labkit.plan.model import ModelSpec
from labkit.plan.quantization import quantize
from labkit.plan.text_config import unwrap

__all__ = ["READERS", "Reader", "read_config_file", "read_model"]

Reader = Callable[[ConfigFields], ModelSpec]


def _readers() -> Mapping[str, Reader]:
    found: dict[str, Reader] = {**dense_families.READERS, **early_families.READERS}
    for module in ("moe_families", "latent_families", "hybrid_families"):
        try:
            families = __import__(f"labkit.plan.{module}", fromlist=["READERS"])
        except ImportError:
            continue
        found.update(families.READERS)
    return MappingProxyType(found)


READERS = _readers()
"""How to read each `model_type`."""


def read_model(config: Mapping[str, Any]) -> ModelSpec:
    """The model a config describes: its text part, where it also has others.

    Raises:
        UnsupportedModelError: names the field and the value that cannot be sized.
    """
    fields, notes = unwrap(config)
    model_type = fields.values.get("model_type")
    reader = READERS.get(model_type) if isinstance(model_type, str) else None
    if reader is None:
        raise _unknown_model_type(fields)
    spec = quantize(reader(fields), fields)
    return replace(spec, notes=(*notes, *spec.notes))


def _unknown_model_type(fields: ConfigFields) -> UnsupportedModelError:
    given = fields.values.get("model_type")
    if not isinstance(given, str):
        return fields.refuse("model_type", "the name of a model family is needed, such as llama")
    near = difflib.get_close_matches(given.lower(), READERS, n=3, cutoff=0.5)
    known = f"near it: {', '.join(near)}" if near else f"known are {', '.join(sorted(READERS))}"
    return fields.refuse("model_type", f"no such family is known here; {known}")
