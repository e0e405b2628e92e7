"""Exercise: the mean of numbers that lie on several ranks, not equally many on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from course.exercises.outcome_signs import right_on_one_rank_only
from course.grading.exercise import Case, Exercise, Mistake


def _case(name: str, lengths: Sequence[int], seed: int) -> Case:
    random = torch.Generator().manual_seed(seed)
    parts = [
        torch.randint(1, 100, (length,), generator=random).double() + 100 * rank
        for rank, length in enumerate(lengths)
    ]

    def arguments(rank: int) -> Mapping[str, Tensor]:
        return {"x": parts[rank].clone()}

    def expected(rank: int) -> Tensor:
        return torch.cat(parts).mean()

    return Case(name, len(parts), arguments, expected, _mistakes(parts))


def _mistakes(parts: list[Tensor]) -> tuple[Mistake, ...]:
    """What goes wrong with `parts`, one tensor `[n]` a rank."""
    size = len(parts)
    total, count = torch.cat(parts).sum(), sum(len(part) for part in parts)
    return (
        Mistake(
            "other-collectives",
            "The numbers took another way than an all-reduce. One all-reduce, or two, is "
            "enough here.",
            shows=lambda outcome: any(
                event.op != "all_reduce" for trace in outcome.traces for event in trace
            ),
        ),
        Mistake(
            "too-many-all-reduces",
            "More than two all-reduces. Each one makes all ranks meet; numbers that are ready at "
            "the same time can travel in the same one.",
            shows=lambda outcome: any(trace.count("all_reduce") > 2 for trace in outcome.traces),
        ),
        Mistake(
            "missing-reduce",
            "Each rank returns the mean of its own part, as if there were no other ranks.",
            returns=lambda rank: parts[rank].mean(),
        ),
        *(
            Mistake(
                "mean-of-means",
                "The ranks' means were averaged. A rank with few numbers then counts as much as a "
                "rank with many, and a rank with none has no mean at all.",
                returns=partial(_whatever_the_rank, averaged),
            )
            for averaged in _averaged_means(parts)
        ),
        Mistake(
            "own-count",
            "The sum runs over all ranks, but it is divided by the number of values on this rank.",
            returns=lambda rank: total / len(parts[rank]),
        ),
        Mistake(
            "own-sum",
            "The number of values is counted over all ranks, but the sum above it is this "
            "rank's alone.",
            returns=lambda rank: parts[rank].sum() / count,
        ),
        Mistake(
            "equal-parts-assumed",
            "The sum is divided by this rank's number of values times the number of ranks, "
            "as if every rank held equally many.",
            returns=lambda rank: total / (len(parts[rank]) * size),
        ),
        Mistake(
            "empty-part-counted",
            "A rank without any number was counted as if it had one.",
            returns=lambda _: total / sum(max(len(part), 1) for part in parts),
        ),
        Mistake(
            "divided-by-ranks",
            "The sum over all ranks is divided by the number of ranks, not of values.",
            returns=lambda rank: total / size,
        ),
        Mistake(
            "sum-instead-of-mean",
            "This is the sum over all ranks; nothing divides it.",
            returns=lambda rank: total,
        ),
        Mistake(
            "averaged-twice",
            'The sum went through op="avg", which divides by the number of ranks, while the number '
            "of values was summed.",
            returns=lambda rank: total / size / count,
        ),
        Mistake(
            "only-one-rank",
            "One rank has the mean and the others return something else. After an all-reduce every "
            "rank can finish the work.",
            shows=right_on_one_rank_only(total / count),
        ),
    )


def _averaged_means(parts: list[Tensor]) -> tuple[Tensor, ...]:
    """The mean of the ranks' means, three ways: a rank without numbers gives NaN, 0 or nothing."""
    means = torch.stack([part.mean() for part in parts])
    held = means[~means.isnan()]
    return means.mean(), held.sum() / len(parts), held.mean()


def _whatever_the_rank(value: Tensor, rank: int) -> Tensor:
    return value


def visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("two ranks, 2 and 5 numbers", (2, 5), seed),
        _case("four ranks, 1, 4, 2 and 6 numbers", (1, 4, 2, 6), seed + 1),
        _case("three ranks, one of them without any number", (3, 0, 4), seed + 2),
    )


def hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case("three ranks, 7, 1 and 2 numbers", (7, 1, 2), seed),
        _case("four ranks, 5, 3, 0 and 9 numbers", (5, 3, 0, 9), seed + 1),
        _case("four ranks, the first two have none", (0, 0, 2, 5), seed + 2),
        _case("three ranks, the first has none", (0, 6, 3), seed + 3),
    )


EXERCISE = Exercise(
    name="mean_of_uneven_parts",
    chapter="00_start_here",
    title="The mean of uneven parts",
    function="global_mean",
    parameters=("comm", "x"),
    points=10,
    visible=visible,
    hidden=hidden,
)
