"""Layers that keep a state of fixed size: their matrices, and the state.

A state has two parts: the last inputs of a short convolution, in the model's own precision, and
the recurrent state, in the precision the config names and otherwise the model's own, as vLLM does.
"""

from __future__ import annotations

from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import FORMATS, first_of, read_dtype
from labkit.plan.layer_shapes import norm
from labkit.plan.model import CacheKind, LayerCache
from labkit.plan.weights import Matrix, Split

PART = "recurrent"


def by_heads(
    name: str,
    out_features: int,
    in_features: int,
    heads: int = 0,
    *,
    replicates: bool = False,
    bias: bool = False,
) -> Matrix:
    """A weight whose outputs are those of heads, which tensor parallelism deals out; or, with 0
    heads, those of channels that each stand alone."""
    return Matrix(
        name,
        PART,
        out_features,
        in_features,
        Split.COLUMN,
        heads=heads,
        replicates=replicates,
        bias=bias,
    )


def from_heads(
    name: str, out_features: int, in_features: int, heads: int = 0, *, bias: bool = False
) -> Matrix:
    """The projection back from the heads, which sums over the ranks."""
    return Matrix(name, PART, out_features, in_features, Split.ROW, heads=heads, bias=bias)


def state(
    fields: ConfigFields, convolution_elements: int, recurrent_elements: int, heads: int
) -> LayerCache:
    """What one sequence keeps in a recurrent layer."""
    elements = convolution_elements + recurrent_elements
    own, recurrent = _state_bytes(fields)
    total = convolution_elements * own + recurrent_elements * recurrent
    return LayerCache(
        CacheKind.RECURRENT,
        state_elements=elements,
        state_heads=heads,
        state_bytes_per_element=total / elements if elements else own,
    )


def _state_bytes(fields: ConfigFields) -> tuple[float, float]:
    own = FORMATS[read_dtype(fields)].bits / 8
    named = first_of(fields, "mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    dtype = fields.word(named, "auto").removeprefix("torch.")
    if dtype == "auto":
        return own, own
    if dtype not in FORMATS:
        raise fields.refuse(named, f"a state is kept in {', '.join(FORMATS)}")
    return own, FORMATS[dtype].bits / 8


def mamba1_matrices(
    hidden: int,
    inner: int,
    state_size: int,
    rank: int,
    kernel: int,
    prefix: str,
    *,
    bias: bool = False,
    conv_bias: bool = True,
    norms: bool = False,
) -> tuple[Matrix, ...]:
    """Mamba: `inner` channels, each with a state of its own; `norms` of its three inputs."""
    inputs = (("dt_layernorm", rank), ("b_layernorm", state_size), ("c_layernorm", state_size))
    return (
        by_heads(f"{prefix}.in_proj", 2 * inner, hidden, bias=bias),
        by_heads(f"{prefix}.conv1d", inner, kernel, bias=conv_bias),
        from_heads(f"{prefix}.x_proj", rank + 2 * state_size, inner),
        by_heads(f"{prefix}.dt_proj", inner, rank, bias=True),
        by_heads(f"{prefix}.A_log", inner, state_size),
        by_heads(f"{prefix}.D", inner, 1),
        *(norm(f"{prefix}.{name}", size) for name, size in inputs if norms),
        from_heads(f"{prefix}.out_proj", hidden, inner, bias=bias),
    )


def mamba2_matrices(
    hidden: int,
    heads: int,
    head_dim: int,
    groups: int,
    state_size: int,
    kernel: int,
    prefix: str,
    *,
    bias: bool = False,
    conv_bias: bool = True,
    out_bias: bool | None = None,
    gated_norm: bool = True,
) -> tuple[Matrix, ...]:
    """Mamba-2: heads with a state each; `groups` of heads share the B and C projections.

    The fused in_proj and conv1d are given in parts, for a rank holds its own heads' channels and
    a whole group's B and C.
    """
    inner, shared = heads * head_dim, 2 * groups * state_size
    return (
        by_heads(f"{prefix}.in_proj", 2 * inner, hidden, heads, bias=bias),
        by_heads(f"{prefix}.in_proj", shared, hidden, groups, replicates=True, bias=bias),
        by_heads(f"{prefix}.in_proj", heads, hidden, heads, bias=bias),
        by_heads(f"{prefix}.conv1d", inner, kernel, heads, bias=conv_bias),
        by_heads(f"{prefix}.conv1d", shared, kernel, groups, replicates=True, bias=conv_bias),
        *(by_heads(f"{prefix}.{name}", heads, 1, heads) for name in ("dt_bias", "A_log", "D")),
        *((by_heads(f"{prefix}.norm", inner, 1, heads),) if gated_norm else ()),
        from_heads(
            f"{prefix}.out_proj", hidden, inner, heads, bias=bias if out_bias is None else out_bias
        ),
    )


def mamba2_state(
    fields: ConfigFields, heads: int, head_dim: int, groups: int, state_size: int, kernel: int
) -> LayerCache:
    """Of Mamba-2: the last kernel - 1 inputs of the convolution, and a matrix for each head."""
    channels = heads * head_dim + 2 * groups * state_size
    return state(fields, channels * (kernel - 1), heads * head_dim * state_size, heads)


def short_convolution(
    fields: ConfigFields, hidden: int, kernel: int, bias: bool
) -> tuple[tuple[Matrix, ...], LayerCache]:
    """LFM2: a gated convolution over the last `kernel` tokens, and what it keeps of them."""
    matrices = (
        by_heads("conv.in_proj", 3 * hidden, hidden, bias=bias),
        by_heads("conv.conv", hidden, kernel, bias=bias),
        from_heads("conv.out_proj", hidden, hidden, bias=bias),
    )
    return matrices, state(fields, hidden * (kernel - 1), 0, hidden)
