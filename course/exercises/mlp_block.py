"""Exercise: the gated MLP over tensor parallel ranks, with one all-reduce."""

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
    passed_shapes,
    slices,
)
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "no-reduce": "Each rank returned its own partial sum of the down projection. The ranks' "
    "partial sums were never added up.",
    "mean-of-partial-sums": "The partial sums were averaged over the ranks. Each is a sum over "
    "other columns of the hidden layer; nothing is counted twice, so nothing is to be divided.",
    "same-slice-everywhere": "Every rank used the same columns of the hidden layer: a slice does "
    "not depend on the rank.",
    "columns-do-not-match": "The columns that gate and up gave this rank are not the ones its "
    "slice of down expects.",
    "cut-as-one-block": "Gate and up were joined and then cut in one go. The first ranks had rows "
    "of the gate only, and multiplied gates by gates.",
    "summed-whole-products": "Every rank did the whole block and then the results were added up: "
    "the output counts once for each rank.",
    "no-activation": "The gate was multiplied with up as it is: no activation anywhere.",
    "activation-on-up": "The activation went to up instead of the gate.",
    "activation-on-product": "The activation came after gate and up were multiplied.",
    "other-activation": "The activation is another function than silu, x * sigmoid(x).",
    "activation-on-partial-sums": "The activation saw partial sums. It is not linear: the sum of "
    "the activated parts is not the activation of the sum.",
    "activation-at-the-end": "The activation came last, on the block's output. It belongs between "
    "the products.",
    "gather-in-the-middle": "The block collects slices from all ranks. The products fit together "
    "so that a rank needs nothing of another rank's columns: only the end of the block sends.",
    "reduce-after-each-linear": "The block adds up over the ranks more than once. A weight cut "
    "along its output features gives finished columns, with nothing to add; cut along its inputs "
    "it costs a message that the block can do without.",
    "reduce-in-the-middle": "The one all-reduce put the hidden layer together, and then every "
    "rank multiplied by the whole down matrix: that product was repeated, not divided.",
    "computes-everything": "Every rank did the whole block and nothing was sent: the work was "
    "repeated on every rank, not divided.",
}


def _returned(ranks: int, weights: tuple[Tensor, ...]) -> Iterator[tuple[str, Returns]]:
    """What each mistake gives on every rank; x and the three matrices are whole."""
    x, gate, up, down = weights
    g, u = F.linear(x, gate), F.linear(x, up)
    right = F.linear(F.silu(g) * u, down)
    yield "no-activation", on_every_rank(F.linear(g * u, down))
    yield "activation-on-up", on_every_rank(F.linear(g * F.silu(u), down))
    yield "activation-on-product", on_every_rank(F.linear(F.silu(g * u), down))
    for activation in (torch.sigmoid, F.relu, F.gelu, _gelu_tanh, torch.tanh):
        yield "other-activation", on_every_rank(F.linear(activation(g) * u, down))
    yield "activation-at-the-end", on_every_rank(F.silu(F.linear(g * u, down)))
    yield "activation-at-the-end", on_every_rank(F.silu(right))
    if ranks == 1:
        return
    hidden = F.silu(g) * u
    places = slices(len(gate), ranks)
    parts = [F.linear(hidden[..., mine], down[:, mine]) for mine in places]
    yield "no-reduce", lambda rank: parts[rank]
    yield "mean-of-partial-sums", on_every_rank(right / ranks)
    yield "summed-whole-products", on_every_rank(right * ranks)
    yield "same-slice-everywhere", on_every_rank(parts[0] * ranks)
    first = hidden[..., places[0]]
    yield "same-slice-everywhere", on_every_rank(_sum(F.linear(first, down[:, s]) for s in places))
    yield (
        "same-slice-everywhere",
        on_every_rank(_sum(F.linear(hidden[..., s], down[:, places[0]]) for s in places)),
    )
    yield (
        "columns-do-not-match",
        on_every_rank(
            _sum(F.linear(hidden[..., r::ranks], down[:, s]) for r, s in enumerate(places))
        ),
    )
    yield (
        "columns-do-not-match",
        on_every_rank(
            _sum(F.linear(hidden[..., s], down[:, r::ranks]) for r, s in enumerate(places))
        ),
    )
    yield "cut-as-one-block", on_every_rank(_sum(_cut_as_one_block(ranks, weights)))
    ungated = [F.linear((g * u)[..., mine], down[:, mine]) for mine in places]
    yield "activation-on-partial-sums", on_every_rank(_sum(F.silu(part) for part in ungated))
    yield "activation-on-partial-sums", on_every_rank(_sum(F.silu(part) for part in parts))
    if x.shape[-1] % ranks == 0:
        yield "activation-on-partial-sums", on_every_rank(_sum(_cut_by_inputs(ranks, weights)))


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def _sum(parts: Iterator[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum(dim=0)


def _cut_as_one_block(ranks: int, weights: tuple[Tensor, ...]) -> Iterator[Tensor]:
    x, gate, up, down = weights
    merged = torch.cat((gate, up))
    blocks = slices(len(merged), ranks)
    for block, mine in zip(blocks, slices(len(gate), ranks), strict=True):
        g, u = F.linear(x, merged[block]).chunk(2, dim=-1)
        yield F.linear(F.silu(g) * u, down[:, mine])


def _cut_by_inputs(ranks: int, weights: tuple[Tensor, ...]) -> Iterator[Tensor]:
    x, gate, up, down = weights
    for mine in slices(x.shape[-1], ranks):
        g, u = (F.linear(x[..., mine], weight[:, mine]) for weight in (gate, up))
        yield F.linear(F.silu(g) * u, down)


def _shown(ranks: int, x: Tensor) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    if ranks == 1:
        return
    yield "gather-in-the-middle", lambda outcome: count(outcome, "all_gather") > 0
    yield "reduce-after-each-linear", lambda outcome: count(outcome, "all_reduce") > 1
    yield (
        "reduce-in-the-middle",
        lambda outcome: (
            all_have_shape(outcome, x.shape)
            and count(outcome, "all_reduce") == 1
            and tuple(x.shape) not in passed_shapes(outcome, "all_reduce")
        ),
    )
    yield (
        "computes-everything",
        lambda outcome: all_have_shape(outcome, x.shape) and count(outcome) == 0,
    )


def _case(
    seed: int, ranks: int, batch: tuple[int, ...], hidden_size: int, intermediate_size: int
) -> Case:
    up_shape, down_shape = (intermediate_size, hidden_size), (hidden_size, intermediate_size)

    def tensors() -> tuple[Tensor, ...]:
        return normal(seed, (*batch, hidden_size), up_shape, up_shape, down_shape)

    def arguments(rank: int) -> Mapping[str, Any]:
        return dict(zip(("x", "gate", "up", "down"), tensors(), strict=True))

    x, gate, up, down = tensors()
    return Case(
        name=f"{ranks} rank{'s' * (ranks > 1)}, x {list(x.shape)}, {intermediate_size} columns",
        ranks=ranks,
        arguments=arguments,
        expected=on_every_rank(F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)),
        mistakes=mistakes(MESSAGES, _returned(ranks, tensors()), _shown(ranks, x)),
        collectives={"all_reduce": 1} if ranks > 1 else None,
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 1, (2,), 3, 5),
        _case(seed + 1, 2, (3,), 4, 12),
        _case(seed + 2, 3, (2, 2), 6, 15),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 2, (2, 3), 6, 8),
        _case(seed + 1, 3, (4,), 3, 18),
        _case(seed + 2, 4, (1,), 8, 20),
        _case(seed + 3, 1, (3, 1), 4, 7),
    )


EXERCISE = Exercise(
    name="mlp_block",
    chapter="02_tensor_parallel",
    title="A gated MLP with one all-reduce",
    function="mlp_block",
    parameters=("comm", "x", "gate", "up", "down"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
