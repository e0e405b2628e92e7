"""A small exercise for tests of the judge: the sum of all ranks' `x`, with one all_reduce."""

from __future__ import annotations

from torch import Tensor, arange, float64

from course.grading.exercise import Case, Exercise, Mistake


def _cases(seed: int, sizes: tuple[int, ...]) -> tuple[Case, ...]:
    def x(rank: int) -> Tensor:
        return arange(4, dtype=float64) + rank + seed

    def case(ranks: int) -> Case:
        def total(rank: int) -> Tensor:
            whole = x(0)
            for other in range(1, ranks):
                whole = whole + x(other)
            return whole

        return Case(
            f"{ranks} ranks",
            ranks,
            arguments=lambda rank: {"x": x(rank)},
            expected=total,
            collectives={"all_reduce": 1},
            mistakes=(
                Mistake("missing-reduce", "Each rank has a part, and nothing adds them.", x),
                Mistake("mean", "A mean, not a sum.", lambda rank: total(rank) / ranks),
            ),
        )

    return tuple(case(ranks) for ranks in sizes)


TOTAL = Exercise(
    name="total",
    chapter="02_tensor_parallel",
    title="Sum of all ranks",
    function="total",
    parameters=("comm", "x"),
    points=10,
    visible=lambda seed: _cases(seed, (2,)),
    hidden=lambda seed: _cases(seed, (2, 3)),
    timeout=3.0,
)


def plain(expected: object, tolerance: float = 1e-9, **arguments: object) -> Exercise:
    """An exercise with a plain function: called with `arguments`, it must return `expected`."""
    case = Case("one call", 0, lambda rank: arguments, lambda rank: expected)
    return Exercise(
        "plain",
        "00_start_here",
        "A plain function",
        "f",
        tuple(arguments),
        10,
        visible=lambda seed: (case,),
        hidden=lambda seed: (case, case),
        timeout=3.0,
        tolerance=tolerance,
    )
