"""Muon for the matrices inside the layers, AdamW for everything else.

Muon (Keller Jordan, 2024, "Muon: An optimizer for hidden layers in neural networks") takes the
momentum of a weight matrix and replaces it by the nearest matrix whose singular values are all
about 1, found by a few matrix products. It needs fewer tokens than AdamW, and tokens are what a
CPU is short of.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def orthogonalise(matrix: Tensor, steps: int = 5) -> Tensor:
    """A matrix with the singular vectors of `matrix` and singular values near 1.

    Newton-Schulz iteration with the quintic a x + b x^3 + c x^5 on the singular values.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised; the step of an [out, in] matrix grows with sqrt(out / in)."""

    def __init__(
        self, parameters: list[nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.05
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                buffer = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
                buffer.lerp_(weight.grad, 1 - group["momentum"])
                update = orthogonalise(weight.grad.lerp(buffer, group["momentum"]))
                scale = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.mul_(1 - group["lr"] * group["decay"])
                weight.add_(update, alpha=-group["lr"] * scale)


def make_optimizers(
    model: nn.Module, matrix_lr: float, other_lr: float
) -> list[torch.optim.Optimizer]:
    """Muon for the two-dimensional weights of the layers, AdamW for the embedding and the norms."""
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        inside = "layers" in name and parameter.dim() == 2
        (matrices if inside else others).append(parameter)
    return [
        Muon(matrices, lr=matrix_lr),
        torch.optim.AdamW(others, lr=other_lr, betas=(0.9, 0.95), weight_decay=0.0, foreach=True),
    ]


def schedule(step: int, steps: int, warmup: int, decay: int) -> float:
    """Factor on the learning rate: up over `warmup`, flat, down to 0 over the last `decay`."""
    return min(1.0, (step + 1) / warmup, max(0.0, (steps - step) / decay))
