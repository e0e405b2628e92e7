"""Exact parameter counts by the transformers library, of models without memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

COUNTED_BUFFERS = ("e_score_correction_bias", "expert_bias", "layer_scalar")
"""What transformers holds as buffers and checkpoints hold as weights."""


def oracle_parameters(config: Mapping[str, Any]) -> int:
    """Weights of the model that transformers builds for a config; tied ones once."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    values = {name: value for name, value in config.items() if name != "model_type"}
    try:
        built = transformers.AutoConfig.for_model(config["model_type"], **values)
    except ValueError as error:
        pytest.skip(f"this transformers does not know it: {error}")
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(built)
    buffers = sum(
        buffer.numel() for name, buffer in model.named_buffers() if name.endswith(COUNTED_BUFFERS)
    )
    return buffers + sum(parameter.numel() for parameter in model.parameters())
