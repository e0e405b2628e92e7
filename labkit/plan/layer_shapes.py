"""The matrices that decoder layers are made of, as an inventory with Hugging Face's names."""

from __future__ import annotations

from typing import Literal

from labkit.plan.weights import BFLOAT16, Matrix, Split, WeightFormat

NormOfHeads = Literal["none", "head", "width"]
"""How queries and keys are normed: not, by one scale for all heads, or by one for each feature."""


def attention_matrices(
    hidden_size: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    *,
    qkv_bias: bool = False,
    o_bias: bool = False,
    qk_norm: bool | NormOfHeads = False,
    qk_norm_bias: bool = False,
    format: WeightFormat = BFLOAT16,
) -> tuple[Matrix, ...]:
    """Grouped-query attention: query, key, value and output projections, norms of q and k.

    A checkpoint's fused `qkv_proj` is given as its three parts: tensor parallelism cuts each.
    """

    def projection(name: str, heads: int, bias: bool) -> Matrix:
        return Matrix(
            f"self_attn.{name}",
            "attention",
            heads * head_dim,
            hidden_size,
            Split.COLUMN,
            heads=heads,
            replicates=name != "q_proj",
            bias=bias,
            format=format,
        )

    output = Matrix(
        "self_attn.o_proj",
        "attention",
        hidden_size,
        num_heads * head_dim,
        Split.ROW,
        heads=num_heads,
        bias=o_bias,
        format=format,
    )
    kind = qk_norm if isinstance(qk_norm, str) else "head" if qk_norm else "none"
    normed = {"none": (), "head": (1, 1), "width": (num_heads, num_kv_heads)}[kind]
    return (
        projection("q_proj", num_heads, qkv_bias),
        projection("k_proj", num_kv_heads, qkv_bias),
        projection("v_proj", num_kv_heads, qkv_bias),
        output,
        *(
            norm(f"self_attn.{name}_norm", heads * head_dim, bias=qk_norm_bias)
            for name, heads in zip("qk", normed, strict=False)
        ),
    )


def gated_mlp_matrices(
    hidden_size: int,
    intermediate_size: int,
    *,
    bias: bool = False,
    prefix: str = "mlp",
    part: str = "MLP",
    copies: int = 1,
    active: int = 1,
    format: WeightFormat = BFLOAT16,
) -> tuple[Matrix, ...]:
    """Gate, up and down projection; `copies` of them, of which a token uses `active`."""

    def matrix(name: str, out_features: int, in_features: int, split: Split) -> Matrix:
        return Matrix(
            f"{prefix}.{name}",
            part,
            out_features,
            in_features,
            split,
            copies=copies,
            active=active,
            bias=bias,
            format=format,
        )

    return (
        matrix("gate_proj", intermediate_size, hidden_size, Split.COLUMN),
        matrix("up_proj", intermediate_size, hidden_size, Split.COLUMN),
        matrix("down_proj", hidden_size, intermediate_size, Split.ROW),
    )


def plain_mlp_matrices(
    hidden_size: int,
    intermediate_size: int,
    *,
    bias: bool = False,
    names: tuple[str, str] = ("mlp.up_proj", "mlp.down_proj"),
    format: WeightFormat = BFLOAT16,
) -> tuple[Matrix, ...]:
    """An MLP without a gate: one projection up, one down."""
    up, down = names
    column, row = Split.COLUMN, Split.ROW
    return (
        Matrix(up, "MLP", intermediate_size, hidden_size, column, bias=bias, format=format),
        Matrix(down, "MLP", hidden_size, intermediate_size, row, bias=bias, format=format),
    )


def norm(name: str, size: int, *, bias: bool = False) -> Matrix:
    """The scale of a norm, which every rank holds whole."""
    return Matrix(name, "norms", size, 1, bias=bias)


def vocabulary(
    name: str, part: str, vocab_size: int, hidden_size: int, *, bias: bool = False
) -> Matrix:
    """An embedding or an LM head."""
    return Matrix(name, part, vocab_size, hidden_size, Split.VOCAB, bias=bias)


def learned_positions(name: str, positions: int, hidden_size: int) -> Matrix:
    """An embedding of positions, which every rank of the first stage holds whole."""
    return Matrix(name, "embedding", positions, hidden_size)
