"""How a quantised checkpoint stores each matrix, by its own rules."""

from __future__ import annotations

from labkit.plan.config_fields import ConfigFields
from labkit.plan.model import ModelSpec


def quantize(spec: ModelSpec, fields: ConfigFields) -> ModelSpec:
    """The model with each matrix stored as the checkpoint's quantisation config says."""
    if fields.nested("quantization_config"):
        raise fields.refuse("quantization_config", "not read yet")
    return spec
