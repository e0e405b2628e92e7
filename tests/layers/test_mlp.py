"""The gated MLP over ranks equals the whole one."""

import pytest
import torch
from layer_inputs import BATCHES, RANKS, named, real_numbers, whole_numbers
from torch.nn import functional as F

from labkit.layers.mlp import SwiGLU
from labkit.layers.source import DictSource


def weights_of(bias: bool) -> dict[str, torch.Tensor]:
    sizes = {"gate_proj": (24, 8), "up_proj": (24, 8), "down_proj": (8, 24)}
    weights = {}
    for seed, (name, (rows, columns)) in enumerate(sizes.items()):
        part_bias = real_numbers(rows, seed=seed + 10) if bias else None
        weights |= named(f"mlp.{name}", real_numbers(rows, columns, seed=seed), part_bias)
    return weights


def whole(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    def linear(name, x):
        return F.linear(x, weights[f"mlp.{name}.weight"], weights.get(f"mlp.{name}.bias"))

    gate = linear("gate_proj", x)
    return linear("down_proj", gate * gate.sigmoid() * linear("up_proj", x))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n", RANKS)
def test_swiglu_equals_the_whole_mlp(pool, n, bias):
    weights = weights_of(bias)
    inputs = [real_numbers(*batch, 8, seed=9) for batch in BATCHES]

    def mlp(comm):
        layer = SwiGLU(8, 24, comm, bias=bias, dtype=torch.float64)
        layer.load(DictSource(weights), "mlp")
        return [layer(x) for x in inputs]

    for outputs in pool(n).run(mlp):
        for x, y in zip(inputs, outputs, strict=True):
            torch.testing.assert_close(y, whole(weights, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", RANKS)
def test_swiglu_is_exact_in_whole_numbers_where_the_gate_is_open(pool, n):
    """A gate of 1000 passes its value through silu unchanged in float64."""
    gate = torch.zeros(24, 8, dtype=torch.float64)
    gate[:, 0] = 1000.0
    weights = named("mlp.gate_proj", gate) | named("mlp.up_proj", whole_numbers(24, 8, seed=1))
    weights |= named("mlp.down_proj", whole_numbers(8, 24, seed=2))
    x = whole_numbers(5, 8, seed=3)
    x[:, 0] = 1.0

    def mlp(comm):
        layer = SwiGLU(8, 24, comm, dtype=torch.float64)
        layer.load(DictSource(weights), "mlp")
        return layer(x)

    up = F.linear(x, weights["mlp.up_proj.weight"])
    for y in pool(n).run(mlp):
        assert torch.equal(y, F.linear(1000 * up, weights["mlp.down_proj.weight"]))
