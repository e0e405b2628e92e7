"""What quantised weights take: bits, scales and zero points, and the rule that says which do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from labkit.plan.config_fields import ConfigFields, is_whole
from labkit.plan.weights import WeightFormat

FP8_TENSOR = WeightFormat("fp8", 8, tensor_bits=32, products="fp8")
"""One float32 scale for a whole matrix."""
FP8_CHANNEL = WeightFormat("fp8", 8, row_bits=32, products="fp8")
"""One float32 scale for each output feature."""
NVFP4 = WeightFormat("nvfp4", 4, group_size=16, group_bits=8, tensor_bits=32)
"""Weights alone: an 8-bit scale for 16 of them, and a float32 one for the matrix."""
MXFP4 = WeightFormat("mxfp4", 4, group_size=32, group_bits=8)
"""Weights alone: an 8-bit exponent for 32 of them."""

INPUT_SCALE_BITS = 32
"""Of the float32 scale of a matrix's inputs, which checkpoints keep beside the weight: static, or
the global one above scales that are found while running."""


@dataclass(frozen=True)
class Rule:
    """How a checkpoint is quantised.

    Attributes:
        words: for a reader.
        format_of: from a module's full name and its part; None where it stays as it was.
        notes: what else the config says, such as how it would keep the KV cache.
    """

    words: str
    format_of: Callable[[str, str], WeightFormat | None]
    notes: tuple[str, ...] = ()


def fp8_blocks(rows: int, columns: int, scale_bits: int = 32) -> WeightFormat:
    """FP8 with one scale for a block of `rows` outputs and `columns` inputs."""
    return WeightFormat(
        "fp8", 8, group_size=columns, group_rows=rows, group_bits=scale_bits, products="fp8"
    )


def with_input_scale(stored: WeightFormat, bits: int = INPUT_SCALE_BITS) -> WeightFormat:
    """The format with a scale of the matrix's inputs beside the weight."""
    return replace(stored, tensor_bits=stored.tensor_bits + bits)


def integer_groups(
    bits: int,
    size: int,
    *,
    scale_bits: int = 16,
    zero_points: bool = True,
    order: bool = False,
) -> WeightFormat:
    """Integers with a scale, and a zero point of their own width, for each group of `size` inputs.

    `size` 0 means one group over all inputs of an output feature. `order`: a 32-bit group number
    for each input feature (GPTQ's g_idx).
    """
    of_group = scale_bits + (bits if zero_points else 0)
    column_bits = 32 if order else 0
    if size:
        return WeightFormat(
            f"int{bits}", bits, group_size=size, group_bits=of_group, column_bits=column_bits
        )
    return WeightFormat(f"int{bits}", bits, row_bits=of_group, column_bits=column_bits)


def read_bits(fields: ConfigFields, *names: str, allowed: tuple[int, ...]) -> int:
    """Bits of a weight, under the first of the names that is there."""
    name = next((name for name in names if fields.has(name)), names[0])
    bits = fields.positive_int(name)
    if bits not in allowed:
        raise fields.refuse(name, f"weights of {', '.join(map(str, allowed))} bits can be sized")
    return bits


def read_group_size(fields: ConfigFields, *names: str) -> int:
    """Inputs that share a scale; 0 for -1, which means all of them.

    It must be there: the shapes of a checkpoint do not say it.
    """
    name = next((name for name in names if fields.has(name)), names[0])
    value = fields.values.get(name)
    if not is_whole(value) or (value < 1 and value != -1):
        raise fields.refuse(name, "a positive whole number is needed, or -1 for no groups")
    return max(value, 0)


def read_block(fields: ConfigFields, name: str) -> tuple[int, int]:
    """Rows and columns of a block."""
    value = fields.values.get(name)
    if (
        not isinstance(value, list | tuple)
        or len(value) != 2
        or not all(is_whole(side) and side > 0 for side in value)
    ):
        raise fields.refuse(name, "two positive whole numbers are needed, rows and columns")
    return value[0], value[1]
