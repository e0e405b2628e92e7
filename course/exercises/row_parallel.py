"""Exercise: a linear layer cut by input features, its partial sums added up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course.exercises.tensor_cases import (
    Returns,
    all_have_shape,
    count,
    mistakes,
    normal,
    on_every_rank,
    slices,
)
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "no-reduce": "Each rank returned its own partial sum: the sum over its own input features "
    "only. The ranks' partial sums were never added up.",
    "bias-on-every-rank": "The bias is in the result once for each rank: every rank's partial sum "
    "carried it, and the sum over the ranks adds all of them.",
    "bias-missing": "The sum over the input features is right and the bias is nowhere in it.",
    "bias-on-one-rank": "The bias came after the sum over the ranks, and on one rank only: the "
    "ranks now hold different results.",
    "mean-of-partial-sums": "The partial sums were averaged over the ranks. Each is a sum over "
    "other input features; nothing is counted twice, so nothing is to be divided.",
    "gathered-partials": "The partial sums stand side by side. Each of them is as large as the "
    "whole output and lacks the other ranks' terms.",
    "same-slice-everywhere": "Every rank used the same input features: the slice does not depend "
    "on the rank, so some features count several times and others never.",
    "columns-do-not-match": "The slice of x and the slice of the weight are different input "
    "features: each x was multiplied by another feature's weights.",
    "summed-whole-products": "Every rank did the whole product, over all input features, and then "
    "the ranks' results were added up: each term counts once for each rank.",
    "cut-outputs": "The weight was cut along its output features. Each rank then has other, "
    "finished outputs, and here these were added up.",
    "gathered-columns": "The output was collected from slices of it: that is the column parallel "
    "layer, with the weight cut along its output features.",
    "computes-everything": "Every rank did the whole product and nothing was sent: the work was "
    "repeated on every rank, not divided.",
}


def _returned(ranks: int, x: Tensor, weight: Tensor, bias: Tensor) -> Iterator[tuple[str, Returns]]:
    product = F.linear(x, weight)
    yield "bias-missing", on_every_rank(product)
    if ranks == 1:
        return
    columns = slices(x.shape[-1], ranks)
    partial = [F.linear(x[..., mine], weight[:, mine]) for mine in columns]
    yield "no-reduce", lambda rank: partial[rank]
    yield "no-reduce", lambda rank: partial[rank] + bias
    yield "no-reduce", lambda rank: partial[rank] + bias * (rank == 0)
    yield "bias-on-every-rank", on_every_rank(product + ranks * bias)
    yield "bias-on-one-rank", lambda rank: product + bias * (rank == 0)
    yield "bias-on-one-rank", lambda rank: product + bias * (rank == ranks - 1)
    yield "mean-of-partial-sums", on_every_rank(product / ranks + bias)
    yield "mean-of-partial-sums", on_every_rank((product + bias) / ranks)
    yield "mean-of-partial-sums", on_every_rank(product / ranks)
    for extra in (torch.zeros_like(bias), bias):
        for dim in range(x.ndim):
            yield (
                "gathered-partials",
                on_every_rank(torch.cat([part + extra for part in partial], dim)),
            )
    yield (
        "gathered-partials",
        on_every_rank(torch.cat([partial[0] + bias, *partial[1:]], dim=-1)),
    )
    yield "same-slice-everywhere", on_every_rank(ranks * partial[0] + bias)
    first = columns[0]
    mixed = [F.linear(x[..., mine], weight[:, first]) for mine in columns]
    yield "same-slice-everywhere", on_every_rank(torch.stack(mixed).sum(dim=0) + bias)
    mixed = [F.linear(x[..., first], weight[:, mine]) for mine in columns]
    yield "same-slice-everywhere", on_every_rank(torch.stack(mixed).sum(dim=0) + bias)
    yield "columns-do-not-match", on_every_rank(_strided(x, weight, columns, of_x=True) + bias)
    yield "columns-do-not-match", on_every_rank(_strided(x, weight, columns, of_x=False) + bias)
    for times in (1, ranks):
        yield "summed-whole-products", on_every_rank(ranks * product + times * bias)
    if len(weight) % ranks == 0:
        rows = slices(len(weight), ranks)
        summed = torch.stack([product[..., mine] + bias[mine] for mine in rows]).sum(dim=0)
        yield "cut-outputs", on_every_rank(summed)
        summed = torch.stack([product[..., mine] for mine in rows]).sum(dim=0)
        yield "cut-outputs", on_every_rank(summed)


def _strided(x: Tensor, weight: Tensor, columns: tuple[slice, ...], *, of_x: bool) -> Tensor:
    """The sum when one of the two was cut into every n-th feature and the other into blocks."""
    ranks = len(columns)
    terms = [
        F.linear(x[..., rank::ranks], weight[:, mine])
        if of_x
        else F.linear(x[..., mine], weight[:, rank::ranks])
        for rank, mine in enumerate(columns)
    ]
    return torch.stack(terms).sum(dim=0)


def _shown(
    ranks: int, x: Tensor, weight: Tensor
) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    if ranks == 1:
        return
    whole = (*x.shape[:-1], len(weight))
    yield (
        "gathered-columns",
        lambda outcome: all_have_shape(outcome, whole) and count(outcome, "all_gather") > 0,
    )
    yield (
        "computes-everything",
        lambda outcome: all_have_shape(outcome, whole) and count(outcome) == 0,
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
        mistakes=mistakes(MESSAGES, _returned(ranks, x, weight, bias), _shown(ranks, x, weight)),
        collectives={"all_reduce": 1} if ranks > 1 else None,
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 1, (2,), 4, 3),
        _case(seed + 1, 2, (3,), 10, 4),
        _case(seed + 2, 3, (2, 4), 9, 6),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 2, (5, 3), 8, 6),
        _case(seed + 1, 3, (1,), 12, 9),
        _case(seed + 2, 4, (6,), 20, 8),
        _case(seed + 3, 1, (2, 2), 3, 5),
    )


EXERCISE = Exercise(
    name="row_parallel",
    chapter="02_tensor_parallel",
    title="Row parallel linear layer",
    function="row_parallel",
    parameters=("comm", "x", "weight", "bias"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
