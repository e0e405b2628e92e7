"""Exercise: a ring in which every rank ends with all ranks' chunks, which differ in length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from course.exercises.message_signs import (
    added_unequal,
    circular_wait,
    forbidden_collective,
    is_right,
    messages_of,
    misfit,
    numbers_sent,
    room,
    sizes_clash,
    went_round_the_comm,
    wrong_neighbour,
)
from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "missing-gather": "Each rank has its own chunk and no other rank's.",
    "order-of-arrival": "All chunks are there, in another order than the ranks'. They arrive at "
    "each rank in an order of its own, and the result wants them all the same way everywhere.",
    "same-chunk-again": "A rank sent its own chunk in every step, so its neighbour received that "
    "one several times and the chunks from further away never.",
    "chunk-missing": "A chunk from further away never came to a rank: the messages stopped before "
    "each chunk had been on every rank.",
    "wrong-place": "A chunk stands, or was to be received, in the place of another rank's. Whose "
    "chunk arrives depends on how far it has come by that step, and on the way the ring turns.",
    "room-like-own-chunk": "The room made for a message has the size of the rank's own chunk. The "
    "chunks of other ranks have other sizes.",
    "chunks-added": "The chunks were added to each other. They are different numbers that belong "
    "side by side.",
    "sends-too-much": "The result is right, and a rank sent more numbers than the whole result "
    "has. In a ring each chunk leaves a rank once at most.",
}


def _arrivals(chunks: Sequence[Tensor], rank: int, step: int) -> list[Tensor]:
    """The chunks as they come to `rank`, its own first, from the neighbour `step` away."""
    return [chunks[(rank + step * i) % len(chunks)] for i in range(len(chunks))]


def _returned(chunks: Sequence[Tensor]) -> Iterator[tuple[str, Returns]]:
    ranks, total = len(chunks), sum(map(len, chunks))
    if ranks == 1:
        return
    starts = [sum(map(len, chunks[:rank])) for rank in range(ranks)]

    def alone(rank: int) -> Tensor:
        whole = chunks[rank].new_zeros(total)
        whole[starts[rank] : starts[rank] + len(chunks[rank])] = chunks[rank]
        return whole

    yield "missing-gather", lambda rank: chunks[rank]
    yield "missing-gather", alone
    for step in (-1, 1):
        came = [_arrivals(chunks, rank, step) for rank in range(ranks)]
        yield "order-of-arrival", [torch.cat(parts) for parts in came].__getitem__
        yield "order-of-arrival", [torch.cat(parts[::-1]) for parts in came].__getitem__
        if ranks > 2:
            again = [torch.cat([own, *[first] * (ranks - 1)]) for own, first, *_ in came]
            yield "same-chunk-again", again.__getitem__
    if len({len(chunk) for chunk in chunks}) == 1:
        yield "chunks-added", on_every_rank(torch.stack(list(chunks)).sum(dim=0))


def _shown(chunks: Sequence[Tensor]) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    ranks, right = len(chunks), torch.cat(list(chunks))
    if ranks == 1:
        return
    lengths = [len(chunk) for chunk in chunks]
    orders = [torch.cat([chunks[i] for i in order]) for order in permutations(range(ranks))]

    def other_order(outcome: Outcome) -> bool:
        """Lengths tell whether a chunk is in another's place; where all are equal, nothing does."""
        return (
            len(set(lengths)) > 1
            and len(outcome.returned) == ranks
            and not is_right(outcome, lambda rank: right)
            and all(any(torch.equal(v, order) for order in orders) for v in outcome.returned)
        )

    def places(value: Any) -> list[int | None]:
        """For each rank's place in the result, whose chunk stands there; None: nobody's."""
        found: list[int | None] = []
        for rank, block in enumerate(value.split(lengths)):
            owners = [i for i, chunk in enumerate(chunks) if torch.equal(block, chunk)]
            found.append(rank if rank in owners else owners[0] if owners else None)
        return found

    def strangers(outcome: Outcome) -> list[set[int]]:
        """For each rank, whose chunks stand in the place of another rank's."""
        return [
            {owner for place, owner in enumerate(places(value)) if owner not in (None, place)}
            for value in outcome.returned
        ]

    def same_chunk_again(outcome: Outcome) -> bool:
        """In every wrong place is the chunk of one rank, which stands in its own place as well."""
        return (
            ranks > 2
            and bool(outcome.returned)
            and all(
                len(strange) == 1 and all(places(value)[owner] == owner for owner in strange)
                for strange, value in zip(strangers(outcome), outcome.returned, strict=True)
            )
        )

    def sent_its_own_only(outcome: Outcome) -> bool:
        made = messages_of(outcome)
        sent = [[r.shape for r in mine if r.op in ("send", "send_recv")] for mine in made]
        return (misfit(outcome) or 0) > 1 and all(
            set(shapes) == {(length,)} for shapes, length in zip(sent, lengths, strict=True)
        )

    def room_like_own(outcome: Outcome) -> bool:
        made = [[shape for r in mine if (shape := room(r))] for mine in messages_of(outcome)]
        return misfit(outcome) is not None and all(
            set(shapes) <= {(length,)} for shapes, length in zip(made, lengths, strict=True)
        )

    def is_short(value: Tensor) -> bool:
        """Whether it is some of the chunks, in some order, and not all of them."""
        some = (order for count in range(1, ranks) for order in permutations(chunks, count))
        return len(value) < len(right) and any(
            torch.equal(value, torch.cat(list(order))) for order in some
        )

    def chunk_missing(outcome: Outcome) -> bool:
        return any(
            is_short(value) or (len(value) == len(right) and None in places(value))
            for value in outcome.returned
        )

    yield "room-like-own-chunk", room_like_own
    yield "same-chunk-again", sent_its_own_only
    yield "chunks-added", added_unequal
    yield "wrong-place", sizes_clash
    yield "order-of-arrival", other_order
    yield "same-chunk-again", same_chunk_again
    yield "wrong-place", lambda outcome: any(strangers(outcome))
    yield "chunk-missing", chunk_missing
    yield (
        "sends-too-much",
        lambda outcome: (
            is_right(outcome, lambda rank: right)
            and any(numbers_sent(trace, right.itemsize) > len(right) for trace in outcome.traces)
        ),
    )


def _case(sizes: Sequence[int], seed: int) -> Case:
    ranks = len(sizes)
    random = torch.Generator().manual_seed(seed)
    chunks = torch.randint(1, 2000, (sum(sizes),), generator=random).double().split(sizes)

    def arguments(rank: int) -> Mapping[str, Any]:
        return {"chunk": chunks[rank].clone(), "sizes": list(sizes)}

    def expected(rank: int) -> Tensor:
        return torch.cat(chunks)

    return Case(
        name=f"{ranks} rank{'s' * (ranks > 1)}, sizes {list(sizes)}",
        ranks=ranks,
        arguments=arguments,
        expected=expected,
        mistakes=(
            forbidden_collective(),
            went_round_the_comm(expected, lambda rank: sizes[rank]),
            wrong_neighbour(),
            circular_wait(),
            *mistakes(MESSAGES, _returned(chunks), _shown(chunks)),
        ),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case((3,), seed),
        _case((2, 4), seed + 1),
        _case((3, 3, 3), seed + 2),
        _case((3, 0, 5, 2), seed + 3),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case((4, 2, 3), seed),
        _case((2, 2, 2, 2), seed + 1),
        _case((2, 5, 3, 4), seed + 2),
        _case((0, 3), seed + 3),
    )


EXERCISE = Exercise(
    name="ring_all_gather",
    chapter="01_collectives",
    title="All-gather round a ring",
    function="ring_all_gather",
    parameters=("comm", "chunk", "sizes"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
