"""Exercise: the best token of a vocabulary that is cut over the ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from course.exercises.outcome_signs import (
    all_returned,
    count,
    right_on_one_rank_only,
    sends_its_logits,
)
from course.grading.exercise import Case, Exercise, Mistake

Change = Callable[[Tensor, int], None]
"""Alters the drawn logits `[B, V]` in place, given a rank's width."""


def _case(
    name: str,
    seed: int,
    *,
    ranks: int,
    width: int,
    vocab_size: int,
    rows: int = 5,
    change: Change | None = None,
) -> Case:
    """`rows` of distinct negative logits over `vocab_size` ids; padding columns hold 0."""
    random = torch.Generator().manual_seed(seed)
    logits = -1.0 - torch.rand(rows, vocab_size, generator=random, dtype=torch.float64)
    if change is not None:
        change(logits, width)
    padded = torch.zeros(rows, ranks * width, dtype=torch.float64)
    padded[:, :vocab_size] = logits
    num_real = [max(0, min(width, vocab_size - rank * width)) for rank in range(ranks)]

    def arguments(rank: int) -> Mapping[str, Tensor | int]:
        block = padded[:, rank * width : (rank + 1) * width]
        return {
            "logits": block.clone(),
            "first_id": rank * width,
            "num_real": num_real[rank],
        }

    def expected(rank: int) -> Tensor:
        return logits.argmax(dim=1)

    return Case(name, ranks, arguments, expected, _mistakes(logits, padded, num_real))


def _mistakes(logits: Tensor, padded: Tensor, num_real: list[int]) -> tuple[Mistake, ...]:
    """logits `[B, V]` without and `padded` with the padding; num_real of each rank."""
    ranks, vocab_size = len(num_real), logits.shape[1]
    width = padded.shape[1] // ranks
    right = logits.argmax(dim=1)
    owner, column = right // width, right % width
    is_top = logits == logits.amax(dim=1, keepdim=True)
    ids = torch.arange(vocab_size)
    candidates = torch.full((len(logits), ranks), -1)  # the first of each rank's top ids; -1: none
    for rank in range(-(-vocab_size // width)):
        mine = is_top[:, rank * width : (rank + 1) * width]
        held = mine.any(dim=1)
        candidates[held, rank] = mine[held].int().argmax(dim=1) + rank * width

    def local_winner(rank: int) -> Tensor:
        _require_several(ranks)
        block = logits[:, rank * width : (rank + 1) * width]
        if not block.shape[1]:
            return torch.full_like(right, rank * width)
        return block.argmax(dim=1) + rank * width

    def local_padded_winner(rank: int) -> Tensor:
        _require_several(ranks)
        return padded[:, rank * width : (rank + 1) * width].argmax(dim=1) + rank * width

    def local_column(rank: int) -> Tensor:
        return local_winner(rank) - rank * width

    def local_padded_column(rank: int) -> Tensor:
        return local_padded_winner(rank) - rank * width

    column_alone = (
        "Each rank returns the column of its own best logit: a column number instead of a token "
        "id, and nobody compared the ranks' best logits."
    )
    no_exchange = (
        "Each rank returns the best of the ids it holds itself, and another rank's larger "
        "logit changes nothing."
    )
    tie = "Where several ids share the largest logit, you do not return the lowest of them."
    return (
        Mistake(
            "sends-all-logits",
            "A rank sent as many numbers as it holds logits. With a vocabulary of 150,000 that is "
            "megabytes a step; of each rank only its best candidate per row can win.",
            shows=sends_its_logits(padded.split(width, dim=1)),
        ),
        Mistake("own-best-only", no_exchange, returns=local_winner),
        Mistake("own-best-only", no_exchange, returns=local_padded_winner),
        Mistake(
            "own-column",
            column_alone,
            shows=lambda outcome: (
                count(outcome) == 0 and all_returned(outcome, local_column, local_padded_column)
            ),
        ),
        Mistake(
            "padding-wins",
            "A padding column won. It holds 0, and where all real logits are negative 0 is the "
            "largest number of the row.",
            returns=lambda _: padded.argmax(dim=1),
        ),
        Mistake(
            "local-index",
            "The winner is right, but you return its column on the rank that holds it. A column "
            "becomes a token id only together with where that rank's block begins.",
            returns=lambda _: column,
        ),
        Mistake(
            "own-offset",
            "The winner's column is right, but each rank added the start of its own block to it, "
            "not that of the block in which the winner lies.",
            returns=lambda rank: column + rank * width,
        ),
        Mistake(
            "offset-from-num-real",
            "The start of the winner's block was computed from num_real. Blocks are equally wide, "
            "padding included, and a block with padding has fewer real columns than its width.",
            returns=lambda _: column + owner * torch.tensor(num_real)[owner],
        ),
        Mistake(
            "tie-to-higher-id", tie, returns=lambda _: torch.where(is_top, ids, -1).amax(dim=1)
        ),
        Mistake("tie-to-higher-id", tie, returns=lambda _: candidates.amax(dim=1)),
        Mistake(
            "tie-to-higher-id",
            tie,
            returns=lambda _: torch.where(is_top & (ids // width == owner[:, None]), ids, -1).amax(
                dim=1
            ),
        ),
        Mistake(
            "tied-ids-added",
            "Where several ranks hold the largest logit, their ids were added up: a sum finds the "
            "winner only as long as one rank alone contributes to it.",
            returns=lambda _: candidates.clamp(min=0).sum(dim=1),
        ),
        Mistake(
            "smallest-logit",
            "You return the id of the smallest of the ranks' best logits.",
            returns=lambda _: _smallest_of_best(logits, width),
        ),
        Mistake(
            "only-one-rank",
            "One rank has the right ids and the others return something else. Every rank needs the "
            "token: each of them feeds it to the next step.",
            shows=right_on_one_rank_only(right),
        ),
    )


def _require_several(ranks: int) -> None:
    if ranks == 1:
        raise ValueError("one rank alone has nothing to exchange")


def _smallest_of_best(logits: Tensor, width: int) -> Tensor:
    blocks = logits.split(width, dim=1)
    best = torch.stack([block.amax(dim=1) for block in blocks], dim=1)
    ids = torch.stack([block.argmax(dim=1) for block in blocks], dim=1)
    lowest = best.argmin(dim=1, keepdim=True)
    return ids.gather(1, lowest).squeeze(1) + lowest.squeeze(1) * width


def _place_winners(logits: Tensor, width: int) -> None:
    """The best ids, row by row: the very first, then the third of each later block."""
    blocks = -(-logits.shape[1] // width)
    for row in range(len(logits)):
        block = row % blocks
        logits[row, min(block * width + 2 * (block > 0), logits.shape[1] - 1)] = -0.5


def _add_ties(logits: Tensor, width: int) -> None:
    """Row 0: a tie of two blocks; row 1: two ids of one block; row 2: both; row 3: all ids."""
    last = logits.shape[1] - 1
    logits[0, [2, last]] = -0.5
    logits[1, [width, width + 2]] = -0.5
    logits[2, [1, 3, width + 1]] = -0.5
    logits[3] = -0.5
    logits[4, last] = -0.5


def visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(
            "two ranks, 12 ids, no padding",
            seed,
            ranks=2,
            width=6,
            vocab_size=12,
            change=_place_winners,
        ),
        _case(
            "three ranks, 16 ids and 2 padding columns, all logits negative",
            seed + 1,
            ranks=3,
            width=6,
            vocab_size=16,
            change=_place_winners,
        ),
        _case(
            "four ranks, 14 ids, the last rank holds padding only, ties",
            seed + 2,
            ranks=4,
            width=5,
            vocab_size=14,
            change=_add_ties,
        ),
        _case("one rank, 5 ids and 3 padding columns", seed + 3, ranks=1, width=8, vocab_size=5),
    )


def hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(
            "three ranks, 23 ids and a padding column",
            seed,
            ranks=3,
            width=8,
            vocab_size=23,
            rows=7,
            change=_place_winners,
        ),
        _case(
            "four ranks, two of them with padding only, ties",
            seed + 1,
            ranks=4,
            width=6,
            vocab_size=11,
            rows=6,
            change=_add_ties,
        ),
        _case("four ranks, 2 ids", seed + 2, ranks=4, width=3, vocab_size=2),
        _case("two ranks, one row", seed + 3, ranks=2, width=40, vocab_size=77, rows=1),
    )


EXERCISE = Exercise(
    name="vocab_argmax",
    chapter="02_tensor_parallel",
    title="The best token of a cut vocabulary",
    function="vocab_argmax",
    parameters=("comm", "logits", "first_id", "num_real"),
    points=10,
    visible=visible,
    hidden=hidden,
)
