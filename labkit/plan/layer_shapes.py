"""The matrices that decoder layers are made of, as an inventory with Hugging Face's names."""

from __future__ import annotations

from labkit.plan.weights import BFLOAT16, Matrix, Split, WeightFormat


def attention_matrices(
    hidden_size: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    *,
    qkv_bias: bool = False,
    o_bias: bool = False,
    qk_norm: bool = False,
    format: WeightFormat = BFLOAT16,
) -> tuple[Matrix, ...]:
    """Grouped-query attention: query, key, value and output projections, norms of q and k."""

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
    norms = (norm("self_attn.q_norm", head_dim), norm("self_attn.k_norm", head_dim))
    return (
        projection("q_proj", num_heads, qkv_bias),
        projection("k_proj", num_kv_heads, qkv_bias),
        projection("v_proj", num_kv_heads, qkv_bias),
        output,
        *(norms if qk_norm else ()),
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


def norm(name: str, size: int, *, bias: bool = False) -> Matrix:
    """The scale of a norm, which every rank holds whole."""
    return Matrix(name, "norms", size, 1, bias=bias)


def vocabulary(name: str, part: str, vocab_size: int, hidden_size: int) -> Matrix:
    """An embedding or an LM head."""
    return Matrix(name, part, vocab_size, hidden_size, Split.VOCAB)
