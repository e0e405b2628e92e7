"""Checkpoints of NVIDIA's Model Optimizer: one algorithm for all, or one for each module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from labkit.plan.compressed_tensors import describe, kv_cache_notes
from labkit.plan.config_fields import ConfigFields
from labkit.plan.module_patterns import called, listed
from labkit.plan.quantization_formats import (
    FP8_CHANNEL,
    FP8_TENSOR,
    NVFP4,
    Rule,
    fp8_blocks,
    read_group_size,
    with_input_scale,
)
from labkit.plan.weights import WeightFormat

_ALGORITHMS: Mapping[str, WeightFormat] = MappingProxyType(
    {
        "FP8": with_input_scale(FP8_TENSOR),
        "FP8_PER_CHANNEL_PER_TOKEN": FP8_CHANNEL,
        # Weight-only by its name alone: engines quantise the inputs too, a group of 128 at a time.
        "FP8_PB_WO": fp8_blocks(128, 128),
        "NVFP4": replace(with_input_scale(NVFP4), products="fp4"),
        "W4A16_NVFP4": NVFP4,
    }
)
_MIXED = "MIXED_PRECISION"


def read_modelopt(fields: ConfigFields) -> Rule:
    """The rule of a `quantization_config`, or of a `hf_quant_config.json`, which nests it."""
    if fields.has("quantization"):
        fields = ConfigFields(fields.nested("quantization"), f"{fields.prefix}quantization.")
    left = (*fields.words("exclude_modules"), *fields.words("ignore"))
    algorithm = fields.values.get("quant_algo")
    if algorithm == _MIXED:
        return _read_mixed(fields, left)
    stored = _read_algorithm(fields)

    def format_of(module: str, part: str) -> WeightFormat | None:
        return None if part == "LM head" or listed(module, left) else stored

    return Rule(f"{describe(stored)} (modelopt)", format_of, kv_cache_notes(fields))


def _read_algorithm(fields: ConfigFields) -> WeightFormat:
    algorithm = fields.values.get("quant_algo")
    stored = _ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else None
    if stored is None:
        known = ", ".join((*_ALGORITHMS, _MIXED))
        raise fields.refuse("quant_algo", f"known are {known}")
    if stored.group_rows == 1 and stored.group_size and fields.has("group_size"):
        size = read_group_size(fields, "group_size")
        if size != stored.group_size:
            raise fields.refuse("group_size", f"{algorithm} has groups of {stored.group_size}")
    return stored


def _read_mixed(fields: ConfigFields, left: tuple[str, ...]) -> Rule:
    named = ConfigFields(fields.nested("quantized_layers"), f"{fields.prefix}quantized_layers.")
    if not named.values:
        raise fields.refuse("quantized_layers", "MIXED_PRECISION lists them")
    formats = {
        name: _read_algorithm(ConfigFields(named.nested(name), f"{named.prefix}{name}."))
        for name in named.values
    }

    def format_of(module: str, part: str) -> WeightFormat | None:
        if listed(module, left):
            return None
        for name in called(module):
            while name:
                if name in formats:
                    return formats[name]
                name = name.rpartition(".")[0]
        return None

    words = " and ".join(dict.fromkeys(describe(stored) for stored in formats.values()))
    return Rule(f"{words} (modelopt)", format_of, kv_cache_notes(fields))
