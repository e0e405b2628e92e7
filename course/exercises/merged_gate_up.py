"""Exercise: one rank's shard of a weight in which gate and up lie one above the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from course.exercises.tensor_cases import mistakes, normal, on_every_rank, slices
from course.grading.exercise import Case, Exercise

MESSAGES = {
    "cut-as-one-block": "The joined matrix was cut in one go. The first ranks then hold rows of "
    "the gate only and the last ones rows of up only, so no rank can multiply a gate by its up.",
    "strided-rows": "The shard has every n-th row. The gates still meet their ups, but the down "
    "projection of this rank expects a block of neighbouring columns.",
    "interleaved": "The rows are the right ones, taken in turn: a gate row, its up row, the next "
    "gate row. The layer halves its output and takes the first half for the gates.",
    "up-before-gate": "The rows are the right ones, with up first. The layer applies its "
    "activation to the first half of its output, which is now up.",
    "one-part-only": "The shard has rows of one of the two parts and none of the other.",
    "same-slice-everywhere": "These are the rows of another rank: the slice does not depend on "
    "the rank, or it moves with the rank from a wrong start (ranks count from 0).",
    "different-slices": "The gate rows and the up rows of the shard have different places in "
    "their parts, so each gate is multiplied by the up of another column.",
    "slices-overlap": "The slices of neighbouring ranks overlap: from rank to rank the start moves "
    "by one row instead of by the length of a slice.",
    "cut-columns": "The cut went through the input features (dim 1): every rank has all outputs, "
    "each over a part of the inputs, and the activation would see partial sums.",
    "joined-side-by-side": "Gate rows and up rows stand beside each other, which makes rows of "
    "2 D inputs. They read the same D inputs.",
    "stacked": "Gate and up form a dimension of their own. One matrix product wants one matrix.",
}


def _wrong(weight: Tensor, rank: int, tp: int) -> Iterator[tuple[str, Tensor]]:
    """The shard that each mistake gives; rank 0's is right where the rank is ignored."""
    gate, up = weight.chunk(2)
    places = slices(len(gate), tp)
    mine = places[rank]
    yield "cut-as-one-block", weight[slices(len(weight), tp)[rank]]
    yield "strided-rows", weight[rank::tp]
    yield "strided-rows", torch.cat((gate[rank::tp], up[rank::tp]))
    yield "interleaved", torch.stack((gate[mine], up[mine]), dim=1).flatten(0, 1)
    yield "up-before-gate", torch.cat((up[mine], gate[mine]))
    yield "one-part-only", gate[mine]
    yield "one-part-only", up[mine]
    yield "same-slice-everywhere", torch.cat((gate[places[0]], up[places[0]]))
    yield "same-slice-everywhere", torch.cat((gate[places[-1]], up[places[-1]]))
    yield "same-slice-everywhere", torch.cat((gate[places[rank - 1]], up[places[rank - 1]]))
    yield "different-slices", torch.cat((gate[mine], up[places[0]]))
    yield "different-slices", torch.cat((gate[places[0]], up[mine]))
    yield "different-slices", torch.cat((gate[mine], up[places[tp - 1 - rank]]))
    width = len(gate) // tp
    yield "slices-overlap", torch.cat((gate[rank : rank + width], up[rank : rank + width]))
    yield "joined-side-by-side", torch.cat((gate[mine], up[mine]), dim=1)
    yield "stacked", torch.stack((gate[mine], up[mine]))
    if weight.shape[1] % tp == 0:
        columns = slices(weight.shape[1], tp)[rank]
        yield "cut-columns", weight[:, columns]
        yield "cut-columns", torch.cat((gate[:, columns], up[:, columns]), dim=1)


def _case(seed: int, rank: int, tp: int, gate_rows: int, hidden_size: int) -> Case:
    def arguments(_: int) -> Mapping[str, Any]:
        (weight,) = normal(seed, (2 * gate_rows, hidden_size))
        return {"weight": weight, "rank": rank, "tp": tp}

    weight: Tensor = arguments(0)["weight"]
    gate, up = weight.chunk(2)
    mine = slices(gate_rows, tp)[rank]
    right = torch.cat((gate[mine], up[mine]))
    return Case(
        name=f"rank {rank} of {tp}, weight {list(weight.shape)}",
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(right),
        mistakes=mistakes(
            MESSAGES, ((key, on_every_rank(shard)) for key, shard in _wrong(weight, rank, tp))
        ),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 0, 2, 4, 6),
        _case(seed, 1, 2, 4, 6),
        _case(seed + 1, 1, 3, 9, 3),
        _case(seed + 2, 3, 4, 8, 4),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(seed, 1, 4, 20, 4),
        _case(seed + 1, 1, 2, 10, 4),
        _case(seed + 2, 0, 3, 9, 9),
        _case(seed + 2, 2, 3, 9, 9),
        _case(seed + 3, 2, 4, 12, 8),
        _case(seed + 4, 4, 5, 15, 10),
    )


EXERCISE = Exercise(
    name="merged_gate_up",
    chapter="02_tensor_parallel",
    title="A rank's shard of gate and up in one matrix",
    function="gate_up_shard",
    parameters=("weight", "rank", "tp"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
