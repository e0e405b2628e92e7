"""Exercise: an all-reduce made of sends and receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from course.exercises.message_signs import (
    circular_wait,
    forbidden_collective,
    went_round_the_comm,
)
from course.exercises.outcome_signs import right_on_one_rank_only
from course.grading.exercise import Case, Exercise, Mistake


def _case(name: str, shape: tuple[int, ...], ranks: int, seed: int) -> Case:
    random = torch.Generator().manual_seed(seed)
    parts = torch.randint(1, 1000, (ranks, *shape), generator=random).double()

    def arguments(rank: int) -> Mapping[str, Tensor]:
        return {"x": parts[rank].clone()}

    def expected(rank: int) -> Tensor:
        return parts.sum(dim=0)

    return Case(name, ranks, arguments, expected, _mistakes(parts))


def _mistakes(parts: Tensor) -> tuple[Mistake, ...]:
    """What goes wrong with `parts` `[ranks, ...]`, one tensor a rank."""
    size, total = len(parts), parts.sum(dim=0)

    def from_neighbour(rank: int, step: int) -> Tensor:
        return parts[(rank + step) % size]

    def running(rank: int, step: int, rounds: int) -> Tensor:
        """Each round every rank passes on the sum it has so far."""
        sums = parts
        for _ in range(rounds):
            sums = sums + sums.roll(-step, dims=0)
        return sums[rank]

    def both_ways(
        key: str, message: str, returns: Callable[[int, int], Tensor]
    ) -> tuple[Mistake, ...]:
        """The same mistake in a ring that turns one way and in one that turns the other."""
        if size == 1:
            return ()
        return tuple(
            Mistake(key, message, returns=partial(_turned, returns, step)) for step in (-1, 1)
        )

    return (
        forbidden_collective(),
        went_round_the_comm(lambda rank: total, lambda rank: total.numel() if size == 1 else 0),
        circular_wait(),
        Mistake(
            "missing-reduce",
            "Each rank returns what it brought: nothing from another rank was added to it.",
            returns=lambda rank: parts[rank],
        ),
        Mistake(
            "only-one-rank",
            "The sum is whole on one rank only. In an all-reduce every rank ends with it, so "
            "whoever has it must pass it on.",
            shows=right_on_one_rank_only(total),
        ),
        Mistake(
            "mean-instead-of-sum",
            "The result is divided by the number of ranks: a mean, not a sum.",
            returns=lambda rank: total / size,
        ),
        Mistake(
            "own-part-missing",
            "What a rank returns has the parts that arrived but not the one it brought itself.",
            returns=lambda rank: total - parts[rank],
        ),
        *both_ways(
            "own-part-missing",
            "A rank returns what arrived last, and its own part is not in it.",
            lambda rank, step: from_neighbour(rank, step),
        ),
        *both_ways(
            "neighbour-only",
            "Each rank added one neighbour's tensor and stopped. With more than two ranks, "
            "parts from further away never arrive.",
            lambda rank, step: parts[rank] + from_neighbour(rank, step),
        ),
        *both_ways(
            "same-part-again",
            "A rank received its neighbour's tensor several times and the other ranks' never: "
            "every round sent the same tensor on its way.",
            lambda rank, step: parts[rank] + (size - 1) * from_neighbour(rank, step),
        ),
        *both_ways(
            "counted-twice",
            "Some parts are in the sum more than once. What travels on is a sum that already "
            "holds parts which the next rank has counted, or will count.",
            lambda rank, step: running(rank, step, size - 1),
        ),
        *both_ways(
            "one-round-too-many",
            "The sums went round once more than there are other ranks.",
            lambda rank, step: running(rank, step, size),
        ),
        Mistake(
            "one-round-too-many",
            "Each rank counted its own part twice: the parts went all the way round the ring, "
            "and the last to arrive was the rank's own.",
            returns=lambda rank: total + parts[rank],
        ),
    )


def _turned(returns: Callable[[int, int], Tensor], step: int, rank: int) -> Tensor:
    return returns(rank, step)


def visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("one rank, 3 numbers", (3,), 1, seed),
        _case("three ranks, 4 numbers each", (4,), 3, seed + 1),
        _case("four ranks, 2 x 3 each", (2, 3), 4, seed + 2),
        _case("two ranks, 5 numbers each", (5,), 2, seed + 3),
    )


def hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case("four ranks, 2 numbers each", (2,), 4, seed),
        _case("three ranks, a single number without a dim", (), 3, seed + 1),
        _case("two ranks, 3 x 1 x 4 each", (3, 1, 4), 2, seed + 2),
        _case("three ranks, no number at all", (0,), 3, seed + 3),
    )


EXERCISE = Exercise(
    name="all_reduce_by_hand",
    chapter="00_start_here",
    title="An all-reduce by hand",
    function="all_reduce_by_hand",
    parameters=("comm", "x"),
    points=10,
    visible=visible,
    hidden=hidden,
)
