"""Checkpoints in the compressed-tensors format: groups of modules, each with a scheme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from labkit.plan.config_fields import ConfigFields
from labkit.plan.module_patterns import refuse_bad_expressions, targeted
from labkit.plan.quantization_formats import (
    MXFP4,
    NVFP4,
    Rule,
    fp8_blocks,
    integer_groups,
    read_bits,
    read_block,
    read_group_size,
    with_input_scale,
)
from labkit.plan.weights import WeightFormat

_PACKED_SHAPE_BITS = 128
"""Two 64-bit numbers that a packed weight keeps of its shape."""

_SCALE_BITS: Mapping[str, int] = MappingProxyType(
    {
        "bfloat16": 16,
        "float16": 16,
        "float32": 32,
        "uint8": 8,
        "float8_e4m3fn": 8,
        "float8_e8m0fnu": 8,
    }
)
_FORMATS = (
    *("pack-quantized", "int-quantized", "float-quantized", "naive-quantized"),
    *("nvfp4-pack-quantized", "mxfp4-pack-quantized", "mixed-precision"),
)


@dataclass(frozen=True)
class _Group:
    targets: tuple[str, ...]
    stored: WeightFormat


def read_compressed_tensors(fields: ConfigFields) -> Rule:
    """The rule of its `config_groups`; `ignore` leaves modules as they are."""
    sparsity = fields.nested("sparsity_config")
    if sparsity and sparsity.get("format", "dense") != "dense":
        raise fields.refuse("sparsity_config", "dense checkpoints can be sized")
    packing = fields.word("format", "mixed-precision")
    if packing not in _FORMATS:
        raise fields.refuse("format", f"known are {', '.join(_FORMATS)}")
    named = ConfigFields(fields.nested("config_groups"), f"{fields.prefix}config_groups.")
    if not named.values:
        raise fields.refuse("config_groups", "at least one group is needed")
    groups = tuple(_read_group(named, name, packing) for name in named.values)
    ignore = fields.words("ignore")
    refuse_bad_expressions(fields, "ignore", (name for name in ignore if name.startswith("re:")))

    def format_of(module: str, part: str) -> WeightFormat | None:
        if targeted(module, ignore):
            return None
        return next((g.stored for g in groups if targeted(module, g.targets)), None)

    words = " and ".join(dict.fromkeys(describe(group.stored) for group in groups))
    return Rule(f"{words} (compressed-tensors)", format_of, kv_cache_notes(fields))


def kv_cache_notes(fields: ConfigFields) -> tuple[str, ...]:
    """What the config says of the KV cache, which an engine may follow or not."""
    asked = fields.values.get("kv_cache_scheme") or fields.values.get("kv_cache_quant_algo")
    if not asked:
        return ()
    if isinstance(asked, Mapping):
        kind = "FP" if asked.get("type", "float") == "float" else "INT"
        asked = f"{kind}{asked.get('num_bits', 8)}"
    return (f"the checkpoint has scales for an {asked} KV cache; an engine may keep it in 16 bits",)


def describe(stored: WeightFormat) -> str:
    """A format in words, such as "INT4, groups of 128"."""
    name = stored.name.upper()
    if stored.group_rows > 1:
        return f"{name} in blocks of {stored.group_rows} x {stored.group_size}"
    if stored.group_size:
        return f"{name}, groups of {stored.group_size}"
    return f"{name}, one scale {'an output feature' if stored.row_bits else 'a matrix'}"


def _read_group(named: ConfigFields, name: str, packing: str) -> _Group:
    group = ConfigFields(named.nested(name), f"{named.prefix}{name}.")
    targets = group.words("targets")
    if not targets:
        raise group.refuse("targets", "the modules it holds for are needed")
    refuse_bad_expressions(group, "targets", (name for name in targets if name.startswith("re:")))
    weights = ConfigFields(group.nested("weights"), f"{group.prefix}weights.")
    stored = _weight_format(weights, group.word("format", packing))
    if group.nested("input_activations"):
        name = f"{group.prefix}input_activations."
        stored = _with_inputs(stored, ConfigFields(group.nested("input_activations"), name))
    else:
        stored = replace(stored, products="")
    return _Group(targets, stored)


def _with_inputs(stored: WeightFormat, inputs: ConfigFields) -> WeightFormat:
    """The format with quantised inputs: products run in the wider of the two types.

    A checkpoint keeps the scale of static inputs in its own 16 bits, that of FP4 ones in 32. Where
    only "local" scales are dynamic there is a global one of 32 bits besides.
    """
    bits = read_bits(inputs, "num_bits", allowed=(4, 8)) if inputs.has("num_bits") else 8
    kind = inputs.word("type", "int")
    if kind not in ("int", "float"):
        raise inputs.refuse("type", "int or float")
    narrow = {"float": "fp", "int": "int"}[kind]
    own = {"nvfp4": "fp4", "mxfp4": "fp4"}.get(stored.name, stored.name)
    stored = replace(stored, products=f"{narrow}{bits}" if bits >= stored.bits else own)
    dynamic = inputs.values.get("dynamic", False)
    if dynamic == "local":
        return with_input_scale(stored)
    if not isinstance(dynamic, bool):
        raise inputs.refuse("dynamic", "true, false or local")
    if dynamic:
        return stored
    if narrow == "fp" and bits == 4:
        return with_input_scale(stored)
    zero_point = 0 if inputs.flag("symmetric", True) else bits
    return with_input_scale(stored, _scale_bits(inputs) + zero_point)


def _weight_format(weights: ConfigFields, packing: str) -> WeightFormat:
    if packing not in _FORMATS:
        raise weights.refuse("format", f"known are {', '.join(_FORMATS)}")
    kind = weights.word("type", "int")
    bits = read_bits(weights, "num_bits", allowed=(4, 8))
    strategy = weights.word("strategy", "group" if weights.has("group_size") else "tensor")
    if kind == "float" and bits == 4:
        size = read_group_size(weights, "group_size")
        is_mx = packing == "mxfp4-pack-quantized"
        expected = MXFP4 if is_mx else NVFP4
        if size != expected.group_size:
            raise weights.refuse(
                "group_size", f"{expected.name} has groups of {expected.group_size}"
            )
        return expected
    if kind not in ("int", "float"):
        raise weights.refuse("type", "int or float")
    scale_bits = _scale_bits(weights)
    if kind == "float":
        return _fp8(weights, strategy, scale_bits)
    size = read_group_size(weights, "group_size") if strategy == "group" else 0
    if strategy not in ("group", "channel", "tensor"):
        raise weights.refuse("strategy", "integers by group, channel or tensor can be sized")
    stored = integer_groups(
        bits,
        size,
        scale_bits=scale_bits,
        zero_points=not weights.flag("symmetric", True),
        order=weights.values.get("actorder") in ("group", "dynamic", True),
    )
    if strategy == "tensor":
        stored = replace(stored, row_bits=0, tensor_bits=scale_bits)
    shape_bits = _PACKED_SHAPE_BITS if packing == "pack-quantized" or bits == 4 else 0
    return replace(stored, tensor_bits=stored.tensor_bits + shape_bits)


def _fp8(weights: ConfigFields, strategy: str, scale_bits: int) -> WeightFormat:
    if strategy == "block":
        rows, columns = read_block(weights, "block_structure")
        return fp8_blocks(rows, columns, scale_bits)
    if strategy == "channel":
        return WeightFormat("fp8", 8, row_bits=scale_bits)
    if strategy == "tensor":
        return WeightFormat("fp8", 8, tensor_bits=scale_bits)
    if strategy == "group":
        size = read_group_size(weights, "group_size")
        return WeightFormat("fp8", 8, group_size=size, group_bits=scale_bits)
    raise weights.refuse("strategy", "FP8 by tensor, channel, group or block can be sized")


def _scale_bits(weights: ConfigFields) -> int:
    """Scales are kept in the model's own 16 bits unless the config says otherwise."""
    name = weights.word("scale_dtype", "bfloat16").removeprefix("torch.")
    if name not in _SCALE_BITS:
        raise weights.refuse("scale_dtype", f"known are {', '.join(_SCALE_BITS)}")
    return _SCALE_BITS[name]
