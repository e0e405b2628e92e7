"""The quantisation methods of checkpoints: `quant_method` by `quant_method`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from labkit.plan.compressed_tensors import read_compressed_tensors
from labkit.plan.config_fields import ConfigFields
from labkit.plan.modelopt import read_modelopt
from labkit.plan.module_patterns import called, listed, refuse_bad_expressions
from labkit.plan.quantization_formats import (
    FP8_CHANNEL,
    FP8_TENSOR,
    MXFP4,
    Rule,
    fp8_blocks,
    integer_groups,
    read_bits,
    read_block,
    read_group_size,
    with_input_scale,
)
from labkit.plan.weights import WeightFormat

_HEAD = "LM head"
_GPTQ_BITS = (2, 3, 4, 8)


def read_rule(fields: ConfigFields) -> Rule:
    """The rule of a quantisation config.

    Raises:
        UnsupportedModelError: names the method, or the field of it, that is not known here.
    """
    if fields.has("quant_algo") or fields.has("quantization"):
        return read_modelopt(fields)
    method = fields.values.get("quant_method")
    reader = METHODS.get(method) if isinstance(method, str) else None
    if reader is None:
        raise fields.refuse("quant_method", f"known are {', '.join(sorted(METHODS))}")
    return reader(fields)


def _everywhere_but(
    stored: WeightFormat, left: tuple[str, ...]
) -> Callable[[str, str], WeightFormat | None]:
    """Every weight but the LM head's and those that are left as they are."""

    def format_of(module: str, part: str) -> WeightFormat | None:
        return None if part == _HEAD or listed(module, left) else stored

    return format_of


def _read_fp8(fields: ConfigFields) -> Rule:
    left = (*fields.words("modules_to_not_convert"), *fields.words("ignored_layers"))
    fmt = fields.word("fmt", "e4m3")
    if not re.fullmatch(r"(float8_)?e4m3(fn)?", fmt):
        raise fields.refuse("fmt", "e4m3 can be sized")
    scheme = fields.word("activation_scheme", "dynamic")
    if scheme not in ("dynamic", "static"):
        raise fields.refuse("activation_scheme", "dynamic or static")
    if not fields.has("weight_block_size"):
        stored = with_input_scale(FP8_TENSOR) if scheme == "static" else FP8_TENSOR
        return Rule("FP8, one scale a matrix", _everywhere_but(stored, left))
    rows, columns = read_block(fields, "weight_block_size")
    words = f"FP8 in blocks of {rows} x {columns}"
    return Rule(words, _everywhere_but(fp8_blocks(rows, columns), left))


def _read_fbgemm_fp8(fields: ConfigFields) -> Rule:
    left = fields.words("modules_to_not_convert")
    return Rule("FP8, one scale an output feature", _everywhere_but(FP8_CHANNEL, left))


def _read_gptq(fields: ConfigFields) -> Rule:
    packed = fields.word("checkpoint_format", "gptq")
    if packed not in ("gptq", "gptq_v2"):
        raise fields.refuse("checkpoint_format", "gptq and gptq_v2 can be sized")
    bits = read_bits(fields, "bits", allowed=_GPTQ_BITS)
    size = read_group_size(fields, "group_size")
    stored = integer_groups(bits, size, order=True)
    inside = _modules_in_block(fields)
    changes = _dynamic_rules(fields, bits, size)

    def format_of(module: str, part: str) -> WeightFormat | None:
        if part == _HEAD:
            return stored if fields.flag("lm_head") else None
        if inside and not listed(module, inside):
            return None
        for expression, changed in changes:
            if any(expression.match(name) for name in called(module)):
                return changed
        return stored

    return Rule(f"INT{bits} (GPTQ), {_groups(size)}", format_of)


def _dynamic_rules(
    fields: ConfigFields, bits: int, size: int
) -> list[tuple[re.Pattern[str], WeightFormat | None]]:
    """GPTQ's exceptions: `-:` leaves what it matches, `+:` or nothing changes its bits or group."""
    refuse_bad_expressions(fields, "dynamic", fields.nested("dynamic"))
    dynamic = ConfigFields(fields.nested("dynamic"), f"{fields.prefix}dynamic.")
    found: list[tuple[re.Pattern[str], WeightFormat | None]] = []
    for pattern in dynamic.values:
        expression = re.compile(re.sub(r"^[+-]:", "", pattern))
        if pattern.startswith("-:"):
            found.append((expression, None))
            continue
        own = ConfigFields(dynamic.nested(pattern), f"{dynamic.prefix}{pattern}.")
        own_bits = read_bits(own, "bits", allowed=_GPTQ_BITS) if own.has("bits") else bits
        own_size = read_group_size(own, "group_size") if own.has("group_size") else size
        found.append((expression, integer_groups(own_bits, own_size, order=True)))
    return found


def _modules_in_block(fields: ConfigFields) -> tuple[str, ...]:
    """GPTQ's list of lists of what is quantised in each layer; empty for everything."""
    name = "modules_in_block_to_quantize"
    if not fields.has(name):
        return ()
    why = "a list of lists of module names is needed"
    groups = fields.values[name]
    if not isinstance(groups, list | tuple):
        raise fields.refuse(name, why)
    found: list[str] = []
    for group in groups:
        if not isinstance(group, list | tuple) or not all(isinstance(m, str) for m in group):
            raise fields.refuse(name, why)
        found += group
    return tuple(found)


def _read_awq(fields: ConfigFields) -> Rule:
    version = fields.word("version", "gemm").lower()
    if version not in ("gemm", "gemv", "gemv_fast", "exllama"):
        raise fields.refuse("version", "gemm, gemv, gemv_fast and exllama can be sized")
    bits = read_bits(fields, "bits", "w_bit", allowed=(4,))
    size = read_group_size(fields, "group_size", "q_group_size")
    zeros = fields.flag("zero_point", True)
    left = fields.words("modules_to_not_convert")
    stored = integer_groups(bits, size, zero_points=zeros)
    return Rule(f"INT{bits} (AWQ), {_groups(size)}", _everywhere_but(stored, left))


def _read_mxfp4(fields: ConfigFields) -> Rule:
    left = fields.words("modules_to_not_convert")

    def format_of(module: str, part: str) -> WeightFormat | None:
        return MXFP4 if part == "experts" and not listed(module, left) else None

    return Rule("MXFP4 experts, groups of 32", format_of)


def _read_bitsandbytes(fields: ConfigFields) -> Rule:
    left = fields.words("llm_int8_skip_modules")
    if fields.flag("load_in_8bit") or fields.flag("_load_in_8bit"):
        # LLM.int8() quantises the inputs as well, all but the columns with outliers.
        stored = WeightFormat("int8", 8, row_bits=32, products="int8")
        return Rule("INT8 (bitsandbytes)", _everywhere_but(stored, left))
    if not (fields.flag("load_in_4bit") or fields.flag("_load_in_4bit")):
        raise fields.refuse("load_in_4bit", "load_in_4bit or load_in_8bit must be true")
    kind = fields.word("bnb_4bit_quant_type", "fp4")
    if kind not in ("nf4", "fp4"):
        raise fields.refuse("bnb_4bit_quant_type", "nf4 and fp4 can be sized")
    # Scales follow runs of 64 weights as they lie in memory, so no matrix side is bound to them.
    nested = fields.flag("bnb_4bit_use_double_quant")
    scale_bits = (8 / 64 + 32 / (64 * 256)) if nested else 32 / 64
    words = f"{kind.upper()} (bitsandbytes)" + (", scales quantised too" if nested else "")
    return Rule(words, _everywhere_but(WeightFormat(kind, 4 + scale_bits), left))


def _read_bitnet(fields: ConfigFields) -> Rule:
    if fields.word("quantization_mode", "offline") != "offline":
        raise fields.refuse("quantization_mode", "weights packed offline can be sized")
    stored = WeightFormat("ternary", 2, tensor_bits=16)
    left = fields.words("modules_to_not_convert")
    return Rule("ternary in 2 bits (BitNet)", _everywhere_but(stored, left))


def _groups(size: int) -> str:
    return f"groups of {size}" if size else "one scale an output feature"


METHODS: Mapping[str, Callable[[ConfigFields], Rule]] = MappingProxyType(
    {
        "fp8": _read_fp8,
        "fbgemm_fp8": _read_fbgemm_fp8,
        "gptq": _read_gptq,
        "awq": _read_awq,
        "mxfp4": _read_mxfp4,
        "bitsandbytes": _read_bitsandbytes,
        "bitnet": _read_bitnet,
        "compressed-tensors": read_compressed_tensors,
        "modelopt": read_modelopt,
        "modelopt_fp4": read_modelopt,
    }
)
"""By `quant_method`."""
