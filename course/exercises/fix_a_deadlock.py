"""Exercise: an exchange of border rows round a ring, which hung."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from course.exercises.message_signs import (
    circular_wait,
    forbidden_collective,
    is_right,
    numbers_sent,
    raised,
    went_round_the_comm,
    wrong_neighbour,
)
from course.exercises.tensor_cases import Returns, mistakes
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "circular-wait": "One rank alone is its own neighbour on both sides, and `send` and `recv` "
    "are for another rank: it would wait for itself.",
    "alike-neighbours": "Two neighbours send to each other, and neither comes to receive. They "
    "took the same side, as if every rank had neighbours of the other kind: round a ring of an "
    "odd number of ranks that cannot be.",
    "exchange-dropped": "The program ends, and the neighbours' rows are missing in it. What hung "
    "was the order of the messages; without the messages there is nothing left to return.",
    "exchange-dropped: alone": "One rank alone is its own neighbour on both sides, so its rows "
    "come from its own tensor: the row before its first is its last.",
    "one-way-only": "One of the two border rows has come from a neighbour, and the other has not: "
    "rows travel in one direction only.",
    "not-a-ring": "The first and the last rank have no row from each other. They are neighbours: "
    "the ranks stand in a ring, and to cut it is one way to end a deadlock, with another result.",
    "borders-mixed-up: sides": "The rows of the two neighbours have changed places.",
    "borders-mixed-up: rows": "A neighbour's far row arrived in place of its near one: what "
    "travels to the right is the row on that side of the tensor, the last one.",
    "borders-mixed-up: order": "With two ranks both neighbours are the same rank. Its messages "
    "arrive in the order in which it sends them, so what it sends to its right must not be taken "
    "where the row of one's own right neighbour is waited for.",
    "own-rows-missing": "A rank returned its neighbours' rows without its own in between.",
    "sends-too-much": "The values are right, and a rank sent more than one row to each side.",
}
"""Up to the colon the key: with two ranks these cannot be told apart."""


Row = Callable[[int], Tensor | None]
"""Rank -> a row, or nothing."""


def _joined(above: Tensor | None, x: Tensor, below: Tensor | None) -> Tensor:
    rows = [x if row is x else row[None] for row in (above, x, below) if row is not None]
    return torch.cat(rows)


def _returned(parts: Tensor) -> Iterator[tuple[str, Returns]]:
    """`parts` `[ranks, R, C]`: what each rank brings."""
    n, zeros = len(parts), torch.zeros_like(parts[0, 0])

    def above(rank: int) -> Tensor:
        return parts[rank - 1, -1]

    def below(rank: int) -> Tensor:
        return parts[(rank + 1) % n, 0]

    def far_above(rank: int) -> Tensor:
        return parts[rank - 1, 0]

    def far_below(rank: int) -> Tensor:
        return parts[(rank + 1) % n, -1]

    def padded(up: Row, down: Row) -> Returns:
        return lambda rank: _joined(up(rank), parts[rank], down(rank))

    def chain(top: Row, bottom: Row) -> Returns:
        """Of a chain: rank 0 has nobody above it, and the last rank nobody below."""
        return padded(
            lambda rank: above(rank) if rank else top(rank),
            lambda rank: below(rank) if rank < n - 1 else bottom(rank),
        )

    fillings: tuple[Row, ...] = (
        lambda rank: None,
        lambda rank: zeros,
        lambda rank: parts[rank, 0],
        lambda rank: parts[rank, -1],
    )
    yield "own-rows-missing", lambda rank: torch.stack((above(rank), below(rank)))
    for filling in fillings:
        yield f"exchange-dropped{': alone' if n == 1 else ''}", padded(filling, filling)
    if n == 1:
        return
    yield "exchange-dropped", padded(fillings[2], fillings[3])
    yield "exchange-dropped", padded(fillings[3], fillings[2])
    for filling in fillings:
        yield "one-way-only", padded(above, filling)
        yield "one-way-only", padded(filling, below)
        yield "not-a-ring", chain(filling, filling)
    yield "not-a-ring", chain(fillings[2], fillings[3])
    yield f"borders-mixed-up: {'sides' if n > 2 else 'order'}", padded(below, above)
    for ends in ((far_above, far_below), (above, far_below), (far_above, below)):
        yield "borders-mixed-up: rows", padded(*ends)


def _shown(parts: Tensor, expected: Returns) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    n, row = len(parts), parts[0, 0].numel()

    def itself(outcome: Outcome) -> bool:
        return any("names itself" in error.text for error in raised(outcome))

    def alike(outcome: Outcome) -> bool:
        """Two neighbours are in a send to each other, and not all ranks are in a send."""
        last = [] if outcome.error is None else [r.flight.last for r in outcome.error.reports]
        to = [mine.peer if mine is not None and mine.op == "send" else None for mine in last]
        mutual = any(other is not None and to[other] == rank for rank, other in enumerate(to))
        return mutual and None in to

    def sends_too_much(outcome: Outcome) -> bool:
        return is_right(outcome, expected) and any(
            numbers_sent(trace, parts.itemsize) > 2 * row for trace in outcome.traces
        )

    if n == 1:
        yield "circular-wait", itself
        return
    yield "alike-neighbours", alike
    yield "sends-too-much", sends_too_much


def _case(ranks: int, rows: int, columns: int, seed: int) -> Case:
    random = torch.Generator().manual_seed(seed)
    parts = torch.randint(1, 1_000_000, (ranks, rows, columns), generator=random).double()

    def arguments(rank: int) -> Mapping[str, Tensor]:
        return {"x": parts[rank].clone()}

    def expected(rank: int) -> Tensor:
        return _joined(parts[rank - 1, -1], parts[rank], parts[(rank + 1) % ranks, 0])

    shown = mistakes(MESSAGES, (), _shown(parts, expected))
    return Case(
        name=f"{ranks} rank{'s' * (ranks > 1)}, x [{rows}, {columns}]",
        ranks=ranks,
        arguments=arguments,
        expected=expected,
        mistakes=(
            forbidden_collective(),
            went_round_the_comm(expected, lambda rank: (rows + 2) * columns * (ranks == 1)),
            *shown[:1],
            wrong_neighbour(),
            circular_wait(),
            *shown[1:],
            *mistakes(MESSAGES, _returned(parts)),
        ),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(2, 3, 4, seed),
        _case(3, 2, 5, seed + 1),
        _case(4, 3, 2, seed + 2),
        _case(1, 4, 3, seed + 3),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(4, 2, 6, seed),
        _case(3, 4, 3, seed + 1),
        _case(2, 2, 7, seed + 2),
        _case(3, 1, 3, seed + 3),
        _case(1, 2, 2, seed + 4),
    )


EXERCISE = Exercise(
    name="fix_a_deadlock",
    chapter="01_collectives",
    title="An exchange that hangs",
    function="fix_a_deadlock",
    parameters=("comm", "x"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
