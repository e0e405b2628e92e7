"""Exercise: a linear layer cut by output features, its output gathered on every rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course.exercises.outcome_signs import all_returned, count, passed_shapes
from course.exercises.tensor_cases import Returns, mistakes, normal, on_every_rank, slices
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "no-gather": "Each rank returned only the columns it computed. The other ranks' "
    "columns are not in it, and the output must be whole on every rank.",
    "gather-wrong-dim": "The ranks' parts were joined along a dimension of the batch, one batch "
    "under the other. They are different columns of the same rows.",
    "bias-missing": "The product is right and the bias is nowhere in it.",
    "bias-twice": "The bias is in the result twice: in each rank's columns, and once more in the "
    "output that was put together from them.",
    "same-slice-everywhere": "Every rank computed the same columns: the slice does not depend on "
    "the rank.",
    "same-bias-slice": "The slice of the weight moves with the rank, the slice of the bias does "
    "not: every rank added the biases that belong to rank 0's columns.",
    "strided-rows": "Each rank took every n-th row of the weight instead of neighbouring ones. "
    "Joined in rank order, such columns stand in another order than the weight's rows.",
    "summed-columns": "The ranks' columns were added up. They are different outputs, not partial "
    "sums of the same output.",
    "cut-inputs": "The weight was cut along its input features. That gives each rank partial sums "
    "of all outputs, and here these partial sums stand side by side.",
    "summed-not-gathered": "The output came together by a sum over the ranks, so each rank sent a "
    "tensor as wide as the whole output. Columns that are finished need no addition.",
    "computes-everything": "Every rank multiplied by the whole weight and nothing was sent: the "
    "work was repeated on every rank, not divided.",
    "gathers-the-weight": "The ranks collected the slices of the weight, and then each did the "
    "whole product. So the weight travels and the work is not divided, as in FSDP. In a tensor "
    "parallel layer the weight stays where it is.",
}


def _returned(ranks: int, x: Tensor, weight: Tensor, bias: Tensor) -> Iterator[tuple[str, Returns]]:
    yield "bias-missing", on_every_rank(F.linear(x, weight))
    yield "bias-twice", on_every_rank(F.linear(x, weight, 2 * bias))
    if ranks == 1:
        return
    rows = slices(len(weight), ranks)
    parts = [F.linear(x, weight[mine], bias[mine]) for mine in rows]
    placed = [torch.zeros_like(F.linear(x, weight)) for _ in rows]
    for whole, mine, part in zip(placed, rows, parts, strict=True):
        whole[..., mine] = part
    yield "no-gather", lambda rank: parts[rank]
    yield "no-gather", lambda rank: placed[rank]
    for dim in range(x.ndim - 1):
        yield "gather-wrong-dim", on_every_rank(torch.cat(parts, dim))
    yield "same-slice-everywhere", on_every_rank(torch.cat(parts[:1] * ranks, dim=-1))
    first_bias = [F.linear(x, weight[mine], bias[rows[0]]) for mine in rows]
    yield "same-bias-slice", on_every_rank(torch.cat(first_bias, dim=-1))
    strided = [F.linear(x, weight[rank::ranks], bias[rank::ranks]) for rank in range(ranks)]
    yield "strided-rows", on_every_rank(torch.cat(strided, dim=-1))
    yield "summed-columns", on_every_rank(torch.stack(parts).sum(dim=0))
    if x.shape[-1] % ranks == 0:
        columns = slices(x.shape[-1], ranks)
        partial = torch.cat([F.linear(x[..., mine], weight[:, mine]) for mine in columns], dim=-1)
        yield "cut-inputs", on_every_rank(partial)
        yield "cut-inputs", on_every_rank(partial + bias.repeat(ranks))


def _shown(
    ranks: int, x: Tensor, weight: Tensor, bias: Tensor
) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    if ranks == 1:
        return
    right = on_every_rank(F.linear(x, weight, bias))
    slice_of_weight = (len(weight) // ranks, weight.shape[1])
    yield (
        "summed-not-gathered",
        lambda outcome: all_returned(outcome, right) and count(outcome, "all_reduce") > 0,
    )
    yield (
        "computes-everything",
        lambda outcome: all_returned(outcome, right) and count(outcome) == 0,
    )
    yield (
        "gathers-the-weight",
        lambda outcome: (
            all_returned(outcome, right) and slice_of_weight in passed_shapes(outcome, "all_gather")
        ),
    )


def _case(seed: int, ranks: int, batch: tuple[int, ...], inputs: int, outputs: int) -> Case:
    def tensors() -> tuple[Tensor, ...]:
        return normal(seed, (*batch, inputs), (outputs, inputs), (outputs,))

    def arguments(rank: int) -> Mapping[str, Any]:
        x, weight, bias = tensors()
        return {"x": x, "weight": weight, "bias": bias}

    x, weight, bias = tensors()
    return Case(
        name=f"{ranks} rank{'s' * (ranks > 1)}, x {list(x.shape)}, weight {list(weight.shape)}",
        ranks=ranks,
        arguments=arguments,
        expected=on_every_rank(F.linear(x, weight, bias)),
        mistakes=mistakes(
            MESSAGES, _returned(ranks, x, weight, bias), _shown(ranks, x, weight, bias)
        ),
        collectives={"all_gather": 1} if ranks > 1 else None,
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 1, (2,), 3, 4),
        _case(seed + 1, 2, (3,), 4, 10),
        _case(seed + 2, 3, (2, 4), 6, 9),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 2, (5, 3), 6, 8),
        _case(seed + 1, 3, (1,), 9, 12),
        _case(seed + 2, 4, (6,), 8, 20),
        _case(seed + 3, 1, (2, 2), 5, 3),
    )


EXERCISE = Exercise(
    name="column_parallel",
    chapter="02_tensor_parallel",
    title="Column parallel linear layer",
    function="column_parallel",
    parameters=("comm", "x", "weight", "bias"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
