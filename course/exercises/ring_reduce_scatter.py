"""Exercise: a ring in which each rank ends with one finished chunk of the sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from course.exercises.message_signs import (
    circular_wait,
    forbidden_collective,
    is_right,
    messages_of,
    misfit,
    numbers_sent,
    raised,
    room,
    sizes_clash,
    went_round_the_comm,
    wrong_neighbour,
)
from course.exercises.outcome_signs import all_have_shape
from course.exercises.summands import summands
from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "other-cut": "The chunks are cut in another way than `torch.tensor_split` does it, which makes "
    "`comm.size` chunks whose lengths differ by one at most, the longer ones first.",
    "not-cut-out": "A rank returned a tensor as long as `x`. Of the sum it keeps one chunk.",
    "mean-instead-of-sum": "The result is divided by the number of ranks: a mean, not a sum.",
    "missing-reduce": "Each rank returned what it brought: nothing was sent, and no other rank's "
    "part was added.",
    "another-ranks-chunk": "A chunk of the sum is finished on every rank, and it belongs to "
    "another rank. Which chunk ends on a rank follows from the one that it sends first.",
    "unfinished-chunk": "The chunk that a rank returns lacks the parts of some ranks. A chunk is "
    "finished once it has been on every rank and each has added its part to what came.",
    "counted-twice": "A rank's part is in its chunk twice: it was there when the chunk set out and "
    "was added again when the chunk came round, or what moved on held it already.",
    "chunks-mixed": "Different chunks were added to each other. The chunk that arrives is another "
    "than the one it is added to, or than the one there was room for: what the sender counts from "
    "its own rank, the receiver must count from the same place.",
    "room-for-what-is-sent": "The room made for a message has the size of the chunk that leaves. "
    "The chunk that arrives is another one, and where the chunks are not equally long it has "
    "another size.",
    "sends-too-much": "The values are right, and a rank sent more than `comm.size - 1` chunks. A "
    "ring sends in each step the one chunk that the next rank goes on with, and no more.",
}


def _cuts(x: Tensor, ranks: int) -> Iterator[Sequence[Tensor]]:
    """`x` `[N]` cut in other ways: in rounded-up, rounded-down and padded lengths, and in turn."""
    floor = len(x) // ranks
    if len(up := x.chunk(ranks)) == ranks:
        yield up
    starts = [rank * floor for rank in range(ranks)]
    yield [x[start : start + floor] for start in starts]
    yield [x[start:stop] for start, stop in pairwise([*starts, len(x)])]
    if floor:
        lengths = [floor + (rank >= ranks - len(x) % ranks) for rank in range(ranks)]
        stops = accumulate(lengths)
        yield [x[stop - size : stop] for size, stop in zip(lengths, stops, strict=True)]
    yield torch.cat((x, x.new_zeros(-len(x) % ranks))).chunk(ranks)
    yield [x[rank::ranks] for rank in range(ranks)]


def _returned(parts: Tensor) -> Iterator[tuple[str, Returns]]:
    """`parts` `[ranks, N]`: what each rank brings."""
    ranks, total = len(parts), parts.sum(dim=0)
    if ranks == 1:
        return
    chunks = total.tensor_split(ranks)
    yield "mean-instead-of-sum", lambda rank: chunks[rank] / ranks
    for shift in range(1, ranks):
        yield "another-ranks-chunk", (chunks[shift:] + chunks[:shift]).__getitem__
    yield "another-ranks-chunk", chunks[::-1].__getitem__
    for chunk in filter(len, chunks):
        yield "another-ranks-chunk", on_every_rank(chunk)
    for cut in _cuts(total, ranks):
        yield "other-cut", cut.__getitem__


def _shown(parts: Tensor) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    ranks, size = parts.shape
    if ranks == 1:
        return
    mine = [part.tensor_split(ranks) for part in parts]
    lengths = {len(chunk) for chunk in mine[0]}

    def counts(outcome: Outcome) -> list[tuple[int, ...]]:
        """How often each rank's part is in its chunk, for each rank whose chunk is such a sum."""
        found = (
            summands(value, torch.stack([mine[r][rank] for r in range(ranks)]), most=2)
            for rank, value in enumerate(outcome.returned)
        )
        return [times for times in found if times is not None]

    def is_mixed(value: Tensor) -> bool:
        """Whether a chunk was added to another one. Equal lengths of two or more only."""
        if len(lengths) > 1 or lengths <= {0, 1}:
            return False
        times = summands(value, torch.cat([torch.stack(chunks) for chunks in mine]))
        return times is not None and len({i % ranks for i, used in enumerate(times) if used}) > 1

    def too_few_chunks(outcome: Outcome) -> bool:
        return len(parts[0].chunk(ranks)) < ranks and any(
            error.type_name in ("IndexError", "ValueError") for error in raised(outcome)
        )

    def room_for_what_is_sent(outcome: Outcome) -> bool:
        exchanges = [r for made in messages_of(outcome) for r in made if r.op == "send_recv"]
        alike = bool(exchanges) and all(r.shape == room(r) for r in exchanges)
        return alike and misfit(outcome) is not None

    limit = (ranks - 1) * -(-size // ranks)
    yield "other-cut", too_few_chunks
    yield "room-for-what-is-sent", room_for_what_is_sent
    yield "chunks-mixed", sizes_clash
    yield "not-cut-out", lambda outcome: size > 1 and all_have_shape(outcome, (size,))
    yield (
        "missing-reduce",
        lambda outcome: (
            not any(outcome.traces) and len(made := counts(outcome)) > 0 and _own_only(made)
        ),
    )
    yield "counted-twice", lambda outcome: any(max(times) > 1 for times in counts(outcome))
    yield "unfinished-chunk", lambda outcome: any(min(times) < 1 for times in counts(outcome))
    yield "chunks-mixed", lambda outcome: any(map(is_mixed, outcome.returned))
    yield (
        "sends-too-much",
        lambda outcome: (
            is_right(outcome, lambda rank: parts.sum(dim=0).tensor_split(ranks)[rank])
            and any(numbers_sent(trace, parts.itemsize) > limit for trace in outcome.traces)
        ),
    )


def _own_only(counts: Sequence[tuple[int, ...]]) -> bool:
    """Whether each of these sums has one part."""
    return all(sum(times) == 1 for times in counts)


def _case(ranks: int, size: int, seed: int) -> Case:
    random = torch.Generator().manual_seed(seed)
    parts = torch.randint(1, 2000, (ranks, size), generator=random).double()

    def arguments(rank: int) -> Mapping[str, Tensor]:
        return {"x": parts[rank].clone()}

    def expected(rank: int) -> Tensor:
        return parts.sum(dim=0).tensor_split(ranks)[rank]

    return Case(
        name=f"{ranks} rank{'s' * (ranks > 1)}, {size} number{'s' * (size != 1)} each",
        ranks=ranks,
        arguments=arguments,
        expected=expected,
        mistakes=(
            forbidden_collective(),
            went_round_the_comm(expected, lambda rank: size if ranks == 1 else 0),
            wrong_neighbour(),
            circular_wait(),
            *mistakes(MESSAGES, _returned(parts), _shown(parts)),
        ),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case(1, 3, seed),
        _case(2, 5, seed + 1),
        _case(3, 9, seed + 2),
        _case(4, 10, seed + 3),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case(3, 11, seed),
        _case(4, 12, seed + 1),
        _case(4, 3, seed + 2),
        _case(2, 8, seed + 3),
    )


EXERCISE = Exercise(
    name="ring_reduce_scatter",
    chapter="01_collectives",
    title="Reduce-scatter round a ring",
    function="ring_reduce_scatter",
    parameters=("comm", "x"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
