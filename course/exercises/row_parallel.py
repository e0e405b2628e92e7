"""Exercise: a linear layer cut by input features, its partial sums added up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course.exercises.outcome_signs import all_returned, count, passed_sizes, reduced_to
from course.exercises.tensor_cases import Returns, held_by, mistakes, normal, on_every_rank, slices
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "no-reduce": "Each rank returned its own partial sum: the sum over its own input features "
    "only. The other ranks' terms are not in it.",
    "bias-on-every-rank": "The bias is in the result once for each rank: each rank brought it "
    "into a sum over the ranks, and such a sum adds all of them.",
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
    "strided-columns": "Each rank took every n-th input feature. With the whole weight on every "
    "rank the sum comes out right; a rank that holds one block of it has no such columns.",
    "summed-whole-products": "Every rank did the whole product, over all input features, and then "
    "the ranks' results were added up: each term counts once for each rank.",
    "summed-again": "What is already the sum over the ranks was added up over the ranks once more: "
    "it counts once for each rank.",
    "averaged-whole-products": "Every rank did the whole product, and dividing by the ranks made "
    "up for it. The work was repeated, and a rank that holds one block of the weight cannot do it.",
    "cut-outputs": "The weight was cut along its output features. Each rank then has other, "
    "finished outputs, and here these were added up.",
    "gathered-partial-sums": "Every rank collected the partial sums of all ranks and added them "
    "up itself. Each is as large as the whole output, and all of them travelled to every rank.",
    "gathered-columns": "The output was collected from slices of it: that is the column parallel "
    "layer, with the weight cut along its output features.",
    "computes-everything": "Every rank did the whole product and nothing was sent: the work was "
    "repeated on every rank, not divided.",
}


def _returned(x: Tensor, held: list[Tensor], bias: Tensor) -> Iterator[tuple[str, Returns]]:
    """What each mistake gives; `held` is the weight as each rank has it."""
    ranks, everywhere = len(held), list(enumerate(held))
    columns = slices(x.shape[-1], ranks)
    partial = [F.linear(x[..., columns[r]], w[:, columns[r]]) for r, w in everywhere]
    product = _sum(partial)
    yield "bias-missing", on_every_rank(product)
    if ranks == 1:
        return
    yield "no-reduce", lambda rank: partial[rank]
    yield "no-reduce", lambda rank: partial[rank] + bias
    yield "no-reduce", lambda rank: partial[rank] + bias * (rank == 0)
    yield "bias-on-every-rank", on_every_rank(product + ranks * bias)
    yield "bias-on-one-rank", lambda rank: product + bias * (rank == 0)
    yield "bias-on-one-rank", lambda rank: product + bias * (rank == ranks - 1)
    yield "mean-of-partial-sums", on_every_rank(product / ranks + bias)
    yield "mean-of-partial-sums", on_every_rank((product + bias) / ranks)
    yield "mean-of-partial-sums", on_every_rank(product / ranks)
    with_bias = [part + bias for part in partial]
    for dim in range(x.ndim):
        for parts in (partial, with_bias, [with_bias[0], *partial[1:]]):
            yield "gathered-partials", on_every_rank(torch.cat(parts, dim))
    for key, terms in _cut_wrongly(x, everywhere, columns):
        yield key, on_every_rank(_sum(terms) + bias)
    whole = _sum([F.linear(x, w) for w in held])
    for times in (1, ranks):
        yield "summed-whole-products", on_every_rank(whole + times * bias)
    if len(bias) % ranks == 0:
        rows = slices(len(bias), ranks)
        summed = _sum([F.linear(x, w[rows[r]]) for r, w in everywhere])
        yield "cut-outputs", on_every_rank(summed)
        yield "cut-outputs", on_every_rank(summed + _sum([bias[mine] for mine in rows]))


def _cut_wrongly(
    x: Tensor, everywhere: list[tuple[int, Tensor]], columns: tuple[slice, ...]
) -> Iterator[tuple[str, list[Tensor]]]:
    """The terms that each rank's wrong slices contribute to the sum."""
    ranks, first = len(columns), columns[0]
    yield "same-slice-everywhere", [F.linear(x[..., first], w[:, first]) for _, w in everywhere]
    yield (
        "same-slice-everywhere",
        [F.linear(x[..., columns[r]], w[:, first]) for r, w in everywhere],
    )
    yield (
        "same-slice-everywhere",
        [F.linear(x[..., first], w[:, columns[r]]) for r, w in everywhere],
    )
    yield (
        "columns-do-not-match",
        [F.linear(x[..., r::ranks], w[:, columns[r]]) for r, w in everywhere],
    )
    yield (
        "columns-do-not-match",
        [F.linear(x[..., columns[r]], w[:, r::ranks]) for r, w in everywhere],
    )
    yield "strided-columns", [F.linear(x[..., r::ranks], w[:, r::ranks]) for r, w in everywhere]
    yield "averaged-whole-products", [F.linear(x, w) / ranks for _, w in everywhere]


def _sum(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts).sum(dim=0)


def _summed_again(
    ranks: int, product: Tensor, bias: Tensor
) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    """Looked for first: without garbage, whole products added up give the same numbers."""
    if ranks > 1:
        summed = [ranks * product + times * bias for times in (0, 1, ranks, ranks**2)]
        yield "summed-again", reduced_to(summed)


def _shown(
    x: Tensor, held: list[Tensor], weight: Tensor, bias: Tensor
) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    """What went another way than it should; `held` is the weight as each rank has it."""
    ranks = len(held)
    if ranks == 1:
        return
    right = F.linear(x, weight, bias)
    gathered = [on_every_rank(right)]
    if len(bias) % ranks == 0:
        rows = slices(len(bias), ranks)
        parts = [F.linear(x, w[mine], bias[mine]) for w, mine in zip(held, rows, strict=True)]
        gathered.append(on_every_rank(torch.cat(parts, dim=-1)))
    yield (
        "gathered-partial-sums",
        lambda outcome: (
            all_returned(outcome, gathered[0])
            and passed_sizes(outcome, "all_gather") == {right.numel()}
        ),
    )
    yield (
        "gathered-columns",
        lambda outcome: all_returned(outcome, *gathered) and count(outcome, "all_gather") > 0,
    )
    yield (
        "computes-everything",
        lambda outcome: (
            count(outcome) == 0
            and all_returned(
                outcome, lambda r: F.linear(x, held[r], bias), lambda r: F.linear(x, held[r])
            )
        ),
    )


def _case(
    seed: int,
    ranks: int,
    batch: tuple[int, ...],
    inputs: int,
    outputs: int,
    *,
    own_block_only: bool = False,
) -> Case:
    """`own_block_only`: what other ranks hold of the weight is garbage on this one."""
    columns = slices(inputs, ranks)

    def arguments(rank: int) -> Mapping[str, Any]:
        x, weight, bias = normal(seed, (*batch, inputs), (outputs, inputs), (outputs,))
        if own_block_only:
            weight = held_by(rank, weight, (slice(None), columns[rank]))
        return {"x": x, "weight": weight, "bias": bias}

    x, weight, bias = normal(seed, (*batch, inputs), (outputs, inputs), (outputs,))
    held = [arguments(rank)["weight"] for rank in range(ranks)]
    name = f"{ranks} rank{'s' * (ranks > 1)}, x {list(x.shape)}, weight {list(weight.shape)}"
    return Case(
        name=name + ", garbage outside the own block" * own_block_only,
        ranks=ranks,
        arguments=arguments,
        expected=on_every_rank(F.linear(x, weight, bias)),
        mistakes=(
            *mistakes(MESSAGES, (), _summed_again(ranks, F.linear(x, weight), bias)),
            *mistakes(MESSAGES, _returned(x, held, bias), _shown(x, held, weight, bias)),
        ),
        collectives={"all_reduce": 1} if ranks > 1 else None,
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 1, (2,), 4, 3),
        _case(seed + 1, 2, (3,), 10, 4),
        _case(seed + 2, 3, (2, 4), 9, 6, own_block_only=True),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 2, (5, 3), 8, 6, own_block_only=True),
        _case(seed + 1, 3, (1,), 12, 9),
        _case(seed + 2, 4, (6,), 20, 8, own_block_only=True),
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
