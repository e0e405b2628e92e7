"""The weights of a model as an inventory: what each matrix is, how it is cut, how it is stored.

Parameter counts, bytes, what a rank holds and what may not be cut all follow from these entries;
nothing else about a model's weights is written down anywhere. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Split(Enum):
    """How tensor parallelism cuts a matrix."""

    COLUMN = "column"
    """By output features: each rank computes some outputs of all inputs."""
    ROW = "row"
    """By input features: each rank computes a partial sum of all outputs."""
    VOCAB = "vocab"
    """By rows of a vocabulary, after padding."""
    WHOLE = "whole"
    """Not at all: every rank holds it."""


@dataclass(frozen=True)
class WeightFormat:
    """How the weights of a matrix are stored.

    Attributes:
        name: as a checkpoint calls it: "bfloat16", "fp8", "int4", "mxfp4", "nvfp4".
        bits: of one weight.
        group_size: inputs that share a scale; 0 where scales do not follow the inputs.
        group_rows: outputs that share it as well: 128 for FP8 in blocks of 128 x 128, else 1.
        group_bits: of the scale and zero point of one group.
        row_bits: of a scale for each output feature (per-channel quantisation).
        column_bits: of what each input feature has besides: its group, where they are reordered.
        tensor_bits: of scales for a whole matrix.
        products: what matrix products run in, as `DeviceSpec.compute_dtype` takes it, where the
            inputs are quantised too: "fp8", "int8", "fp4". "" for the model's own dtype: weights
            alone are quantised, and are widened before they are multiplied.
    """

    name: str
    bits: float
    group_size: int = 0
    group_rows: int = 1
    group_bits: float = 0.0
    row_bits: float = 0.0
    column_bits: float = 0.0
    tensor_bits: float = 0.0
    products: str = ""

    def stored_bytes(self, out_features: int, in_features: int) -> float:
        """Bytes of one matrix with its scales; a group that is started counts whole."""
        bits = out_features * in_features * self.bits + out_features * self.row_bits
        bits += in_features * self.column_bits + self.tensor_bits
        if self.group_size:
            groups = -(-in_features // self.group_size) * -(-out_features // self.group_rows)
            bits += groups * self.group_bits
        return bits / 8


FLOAT32 = WeightFormat("float32", 32)
BFLOAT16 = WeightFormat("bfloat16", 16)
FLOAT16 = WeightFormat("float16", 16)


@dataclass(frozen=True)
class Matrix:
    """One weight of a layer, or all its `copies` if there is one for each expert.

    Attributes:
        name: as in the checkpoint, without the layer's prefix: "self_attn.q_proj".
        part: what it belongs to: "attention", "MLP", "experts", "shared experts", "router",
            "norms", "recurrent", "embedding", "LM head".
        out_features, in_features: of one copy; a vector (a norm, a bias of its own) has one input.
        split: how tensor parallelism cuts it.
        heads: heads its cut side is made of, which stay whole; 0 if any feature may be a border.
        replicates: with more ranks than `heads` each rank keeps one whole head (KV projections).
        copies: experts; 1 for what is no expert.
        active: how many of the copies one token uses.
        bias: whether each copy has a bias of `out_features` elements, stored unquantised.
        format: how it is stored.
    """

    name: str
    part: str
    out_features: int
    in_features: int
    split: Split = Split.WHOLE
    heads: int = 0
    replicates: bool = False
    copies: int = 1
    active: int = 1
    bias: bool = False
    format: WeightFormat = BFLOAT16

    @property
    def parameters_each(self) -> int:
        """Weights of one copy, and its bias."""
        return self.out_features * self.in_features + self.out_features * self.bias

    @property
    def num_parameters(self) -> int:
        """Weights and biases of all copies."""
        return self.copies * self.parameters_each

    @property
    def num_active_parameters(self) -> int:
        """Weights and biases of the copies one token uses."""
        return self.active * self.parameters_each

    @cached_property
    def bytes_each(self) -> float:
        """Bytes of one copy: weights, scales, bias in 16 bits (32 where the weights are)."""
        bias_bytes = self.out_features * self.bias * (4 if self.format.bits == 32 else 2)
        return self.format.stored_bytes(self.out_features, self.in_features) + bias_bytes

    @cached_property
    def total_bytes(self) -> float:
        """Bytes of all copies."""
        return self.copies * self.bytes_each

    @property
    def is_expert(self) -> bool:
        """Whether expert parallelism deals it out: routed experts, not shared ones."""
        return self.part == "experts"
