"""Exercise: the gated MLP over tensor parallel ranks, with one all-reduce."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course.exercises.outcome_signs import all_returned, count, passed_sizes, reduced_to
from course.exercises.tensor_cases import Returns, held_by, mistakes, normal, on_every_rank, slices
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "no-reduce": "Each rank returned its own partial sum of the down projection. The "
    "other ranks' columns are not in it.",
    "mean-of-partial-sums": "The partial sums were averaged over the ranks. Each is a sum over "
    "other columns of the hidden layer; nothing is counted twice, so nothing is to be divided.",
    "same-slice-everywhere": "Every rank used the same columns of the hidden layer: a slice does "
    "not depend on the rank.",
    "columns-do-not-match": "The columns that gate and up gave this rank are not the ones its "
    "slice of down expects.",
    "strided-columns": "Each rank took every n-th column of the hidden layer. With whole matrices "
    "on every rank the sum comes out right; a rank that holds one block has no such columns.",
    "cut-as-one-block": "Gate and up were joined and then cut in one go. The first ranks had rows "
    "of the gate only, and multiplied gates by gates.",
    "summed-whole-products": "Every rank did the whole block and then the results were added up: "
    "the output counts once for each rank.",
    "summed-again": "What is already the sum over the ranks was added up over the ranks once more: "
    "it counts once for each rank.",
    "averaged-whole-products": "Every rank did the whole block, and dividing by the ranks made up "
    "for it. The work was repeated, and a rank that holds one block of each matrix cannot do it.",
    "gate-and-up-added": "Gate and up were added. A gate scales: it multiplies.",
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
    "gathered-partial-sums": "Every rank collected the partial sums of all ranks and added them "
    "up itself. Each is as large as the whole output, and all of them travelled to every rank.",
    "reduce-after-each-linear": "The block adds up over the ranks more than once. A weight cut "
    "along its output features gives finished columns, with nothing to add; cut along its inputs "
    "it costs a message that the block can do without.",
    "reduce-in-the-middle": "The one all-reduce put the hidden layer together, and then every "
    "rank multiplied by the whole down matrix: that product was repeated, not divided.",
    "computes-everything": "Every rank did the whole block and nothing was sent: the work was "
    "repeated on every rank, not divided.",
}


Weights = tuple[Tensor, Tensor, Tensor]
"""gate and up `[F, D]`, down `[D, F]`, as one rank has them."""


def _returned(x: Tensor, held: list[Weights]) -> Iterator[tuple[str, Returns]]:
    """What each mistake gives; `held` are the matrices of every rank."""
    ranks = len(held)
    places = slices(len(held[0][0]), ranks)
    own = [
        (gate[mine], up[mine], down[:, mine])
        for (gate, up, down), mine in zip(held, places, strict=True)
    ]
    parts = [_block(x, weights) for weights in own]
    for key, gated in _GATINGS:
        yield key, on_every_rank(_sum(_block(x, weights, gated) for weights in own))
    ungated = [_block(x, weights, lambda g, u: g * u) for weights in own]
    yield "activation-at-the-end", on_every_rank(F.silu(_sum(ungated)))
    yield "activation-at-the-end", on_every_rank(F.silu(_sum(parts)))
    if ranks == 1:
        return
    yield "no-reduce", lambda rank: parts[rank]
    yield "mean-of-partial-sums", on_every_rank(_sum(parts) / ranks)
    yield "activation-on-partial-sums", on_every_rank(_sum(F.silu(part) for part in parts))
    yield "activation-on-partial-sums", on_every_rank(_sum(F.silu(part) for part in ungated))
    for key, partial in _cut_wrongly(x, held, places):
        yield key, on_every_rank(_sum(partial))


_GATINGS: tuple[tuple[str, Callable[[Tensor, Tensor], Tensor]], ...] = (
    ("no-activation", lambda g, u: g * u),
    ("activation-on-up", lambda g, u: g * F.silu(u)),
    ("activation-on-product", lambda g, u: F.silu(g * u)),
    ("gate-and-up-added", lambda g, u: F.silu(g) + u),
    ("other-activation", lambda g, u: torch.sigmoid(g) * u),
    ("other-activation", lambda g, u: F.relu(g) * u),
    ("other-activation", lambda g, u: F.gelu(g) * u),
    ("other-activation", lambda g, u: F.gelu(g, approximate="tanh") * u),
    ("other-activation", lambda g, u: torch.tanh(g) * u),
)


def _block(
    x: Tensor,
    weights: Weights,
    gated: Callable[[Tensor, Tensor], Tensor] = lambda g, u: F.silu(g) * u,
) -> Tensor:
    gate, up, down = weights
    return F.linear(gated(F.linear(x, gate), F.linear(x, up)), down)


def _cut_wrongly(
    x: Tensor, held: list[Weights], places: tuple[slice, ...]
) -> Iterator[tuple[str, list[Tensor]]]:
    """The partial sums that each rank has after wrong slices."""
    n, first = len(places), places[0]
    each = [(rank, *weights) for rank, weights in enumerate(held)]

    def summed(cut: Callable[..., Weights]) -> list[Tensor]:
        return [_block(x, cut(r, g, u, d)) for r, g, u, d in each]

    yield "same-slice-everywhere", summed(lambda r, g, u, d: (g[first], u[first], d[:, first]))
    yield "same-slice-everywhere", summed(lambda r, g, u, d: (g[first], u[first], d[:, places[r]]))
    yield (
        "same-slice-everywhere",
        summed(lambda r, g, u, d: (g[places[r]], u[places[r]], d[:, first])),
    )
    yield "columns-do-not-match", summed(lambda r, g, u, d: (g[r::n], u[r::n], d[:, places[r]]))
    yield (
        "columns-do-not-match",
        summed(lambda r, g, u, d: (g[places[r]], u[places[r]], d[:, r::n])),
    )
    yield "strided-columns", summed(lambda r, g, u, d: (g[r::n], u[r::n], d[:, r::n]))
    yield "summed-whole-products", summed(lambda r, g, u, d: (g, u, d))
    yield "averaged-whole-products", [part / n for part in summed(lambda r, g, u, d: (g, u, d))]

    def as_one_block(r: int, g: Tensor, u: Tensor, d: Tensor) -> Weights:
        gate, up = torch.cat((g, u)).chunk(n)[r].chunk(2)
        return gate, up, d[:, places[r]]

    yield "cut-as-one-block", summed(as_one_block)
    if x.shape[-1] % n == 0:
        inputs = slices(x.shape[-1], n)
        yield (
            "activation-on-partial-sums",
            [
                _block(x[..., inputs[r]], (g[:, inputs[r]], u[:, inputs[r]], d))
                for r, g, u, d in each
            ],
        )


def _sum(parts: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum(dim=0)


def _summed_again(ranks: int, right: Tensor) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    """Looked for first: without garbage, whole products added up give the same numbers."""
    if ranks > 1:
        yield "summed-again", reduced_to([ranks * right])


def _shown(
    x: Tensor, held: list[Weights], whole: Weights
) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    """What went another way than it should; `held` are the matrices of every rank."""
    if len(held) == 1:
        return
    gate, up, _ = whole
    right = on_every_rank(_block(x, whole))
    hidden = F.silu(F.linear(x, gate)) * F.linear(x, up)
    yield (
        "gathered-partial-sums",
        lambda outcome: (
            all_returned(outcome, right) and passed_sizes(outcome, "all_gather") == {x.numel()}
        ),
    )
    yield "gather-in-the-middle", lambda outcome: count(outcome, "all_gather") > 0
    yield "reduce-after-each-linear", lambda outcome: count(outcome, "all_reduce") > 1
    yield (
        "reduce-in-the-middle",
        lambda outcome: (
            all_returned(outcome, right, lambda r: F.linear(hidden, held[r][2]))
            and count(outcome, "all_reduce") == 1
            and max(passed_sizes(outcome, "all_reduce")) > x.numel()
        ),
    )
    yield (
        "computes-everything",
        lambda outcome: count(outcome) == 0 and all_returned(outcome, lambda r: _block(x, held[r])),
    )


def _case(
    seed: int,
    ranks: int,
    batch: tuple[int, ...],
    hidden_size: int,
    intermediate_size: int,
    *,
    own_block_only: bool = False,
) -> Case:
    """`own_block_only`: what other ranks hold of the matrices is garbage on this one."""
    places = slices(intermediate_size, ranks)
    wide = (intermediate_size, hidden_size)

    def whole() -> tuple[Tensor, ...]:
        return normal(seed, (*batch, hidden_size), wide, wide, (hidden_size, intermediate_size))

    def held(rank: int) -> Weights:
        _, gate, up, down = whole()
        if not own_block_only:
            return gate, up, down
        rows, columns = (places[rank],), (slice(None), places[rank])
        return (
            held_by(rank, gate, rows),
            held_by(rank + ranks, up, rows),
            held_by(rank, down, columns),
        )

    def arguments(rank: int) -> Mapping[str, Any]:
        return dict(zip(("x", "gate", "up", "down"), (whole()[0], *held(rank)), strict=True))

    x, gate, up, down = whole()
    everywhere = [held(rank) for rank in range(ranks)]
    name = f"{ranks} rank{'s' * (ranks > 1)}, x {list(x.shape)}, {intermediate_size} columns"
    return Case(
        name=name + ", garbage outside the own block" * own_block_only,
        ranks=ranks,
        arguments=arguments,
        expected=on_every_rank(_block(x, (gate, up, down))),
        mistakes=(
            *mistakes(MESSAGES, (), _summed_again(ranks, _block(x, (gate, up, down)))),
            *mistakes(MESSAGES, _returned(x, everywhere), _shown(x, everywhere, (gate, up, down))),
        ),
        collectives={"all_reduce": 1} if ranks > 1 else None,
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 1, (2,), 3, 5),
        _case(seed + 1, 2, (3,), 4, 12),
        _case(seed + 2, 3, (2, 2), 6, 15, own_block_only=True),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 2, (2, 3), 6, 8, own_block_only=True),
        _case(seed + 1, 3, (4,), 3, 18),
        _case(seed + 2, 4, (1,), 8, 20, own_block_only=True),
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
