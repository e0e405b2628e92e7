"""Exercise: an all-reduce that adds in rank order, so that its bits depend on nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import permutations

import torch
from torch import Tensor

from course.exercises.message_signs import (
    circular_wait,
    forbidden_collective,
    went_round_the_comm,
)
from course.exercises.outcome_signs import right_on_one_rank_only
from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "missing-reduce": "Each rank returns what it brought: nothing from another rank was added to "
    "it.",
    "only-one-rank": "The sum is right on one rank only. In an all-reduce every rank ends with it, "
    "bit for bit.",
    "mean-instead-of-sum": "The result is divided by the number of ranks: a mean, not a sum.",
    "part-missing": "One rank's part is not in the sum: the parts that arrived were added, and the "
    "one that was there already was not, or it was overwritten.",
    "own-first": "Each rank begins with its own part and then adds the others'. So every rank adds "
    "in another order, and the ranks' results differ in their last bits.",
    "order-of-arrival": "Each rank adds the parts as they come round the ring, from its own on. So "
    "every rank adds in another order, and the ranks' results differ in their last bits.",
    "order-by-chunk": "The order of the additions depends on the chunk that a number lies in, as "
    "in a ring all-reduce: each chunk's sum begins on another rank. The same number in a longer "
    "message then gets other bits.",
    "reversed-order": "The parts are added from the last rank to the first.",
    "sums-of-pairs": "Sums of several ranks were added to each other, as in a tree or in recursive "
    "doubling. Here one part at a time is added to the sum of all ranks before it.",
    "wider-sum": "The additions were done in a wider type than the one asked for and rounded at "
    "the end: closer to the true sum, and other bits.",
    "rounded-on-the-way": "The sum was rounded to bfloat16 after each addition, or while it "
    "travelled. Only the finished sum is rounded.",
    "rounded-messages": "The parts were rounded to 16 bits before they were added: half the bytes, "
    "and most of the digits are gone.",
    "another-order": "The sum is right up to rounding, and its last bits are not those of an "
    "addition in rank order: on some rank the parts were added in another order.",
}
CLOSE = 0.02
"""Relative to the sizes of the parts: sums that agree so well hold the same parts."""


def in_order(parts: Tensor, order: Sequence[int]) -> Tensor:
    """The parts added one at a time in this order, each addition rounded to float32."""
    return reduce(torch.add, [parts[rank].float() for rank in order])


def _in_rank_order(parts: Tensor) -> Tensor:
    return in_order(parts, range(len(parts))).to(parts.dtype)


def _tree_sums(parts: Tensor) -> Iterator[Tensor]:
    """Sums of pairs, added: as recursive doubling with its fold does it, and trees."""
    p = parts.float()
    if len(p) == 3:
        yield (p[0] + p[2]) + p[1]
    if len(p) == 4:
        yield (p[0] + p[1]) + (p[2] + p[3])
        yield (p[0] + p[2]) + (p[1] + p[3])
        yield (p[0] + p[3]) + (p[1] + p[2])


def _other_sums(parts: Tensor) -> Iterator[Tensor]:
    """Every sum whose bits may differ from those in rank order."""
    ranks = range(len(parts))
    if parts.dtype == torch.bfloat16:
        yield reduce(torch.add, parts.unbind())
        return
    for order in permutations(ranks):
        if order[0] < order[1] and order != tuple(ranks):  # a + b and b + a are the same
            yield in_order(parts, order)
    if len(parts) > 3:
        yield from _tree_sums(parts)
    yield _wider_sum(parts)


def _wider_sum(parts: Tensor) -> Tensor:
    return parts.double().sum(dim=0).float()


def telling_parts(ranks: int, size: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """`[ranks, size]`, such that another order of adding gives other bits, for every number.

    With two ranks there is one order only, and any numbers do. With three, the other orders differ
    among themselves too, and a wider sum agrees with each of them in turn.
    """
    random = torch.Generator().manual_seed(seed)
    drawn = torch.randn(ranks, 400 * size + 2000, generator=random)
    drawn *= 2.0 ** torch.randint(0, 4, drawn.shape, generator=random)
    drawn = drawn.to(dtype)
    if ranks > 2:
        right, others = _in_rank_order(drawn), list(_other_sums(drawn))
        drawn = drawn[:, torch.stack([other != right for other in others]).all(dim=0)]
    if ranks == 3 and dtype == torch.float32:
        one, other, wide = _other_sums(drawn)
        turns = [drawn[:, (wide == a) & (wide != b)] for a, b in ((one, other), (other, one))]
        length = min(part.shape[1] for part in turns)
        drawn = torch.stack([part[:, :length] for part in turns], dim=2).flatten(1)
    assert drawn.shape[1] >= size
    return drawn[:, :size]


def _ring_order(chunk: int, ranks: int, start: int, step: int) -> list[int]:
    """The ranks in the order in which a ring all-reduce adds this chunk."""
    return [(chunk + start + step * i) % ranks for i in range(ranks)]


def _returned(parts: Tensor) -> Iterator[tuple[str, Returns]]:
    """`parts` `[ranks, ...]`: what each rank brings."""
    ranks, dtype = len(parts), parts.dtype
    if dtype == torch.float32:
        for narrow in (torch.bfloat16, torch.float16):
            yield "rounded-messages", on_every_rank(in_order(parts.to(narrow), range(ranks)))
            yield "rounded-messages", _rounded_but_its_own(parts, narrow).__getitem__
    if ranks == 1:
        return
    yield "missing-reduce", parts.unbind().__getitem__
    yield "mean-instead-of-sum", on_every_rank((in_order(parts, range(ranks)) / ranks).to(dtype))
    others = [[r for r in range(ranks) if r != rank] for rank in range(ranks)]
    lacking = [in_order(parts, rest).to(dtype) for rest in others]
    yield "part-missing", lacking.__getitem__
    for total in lacking:
        yield "part-missing", on_every_rank(total)
    if ranks == 2:
        return
    if dtype == torch.bfloat16:
        yield "rounded-on-the-way", on_every_rank(next(_other_sums(parts)))
        return
    own_first = [in_order(parts, [rank, *others[rank]]) for rank in range(ranks)]
    yield "own-first", own_first.__getitem__
    own_first = [in_order(parts, [rank, *others[rank][::-1]]) for rank in range(ranks)]
    yield "own-first", own_first.__getitem__
    for step in (-1, 1):
        arrived = [in_order(parts, _ring_order(rank, ranks, 0, step)) for rank in range(ranks)]
        yield "order-of-arrival", arrived.__getitem__
    for start in range(ranks):
        for step in (-1, 1):
            chunks = [
                in_order(cut, _ring_order(chunk, ranks, start, step))
                for chunk, cut in enumerate(parts.reshape(ranks, -1).tensor_split(ranks, dim=1))
            ]
            whole = torch.cat(chunks).view(parts.shape[1:])
            yield "order-by-chunk", on_every_rank(whole)
    yield "reversed-order", on_every_rank(in_order(parts, range(ranks)[::-1]))
    for total in _tree_sums(parts):
        yield "sums-of-pairs", on_every_rank(total)
    yield "wider-sum", on_every_rank(_wider_sum(parts))


def _rounded_but_its_own(parts: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """What each rank gets whose own part kept all its digits."""
    kept = [parts.to(dtype).float() for _ in parts]
    for rank, mine in enumerate(kept):
        mine[rank] = parts[rank]
    return [in_order(mine, range(len(parts))) for mine in kept]


def _shown(parts: Tensor) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    right, size = _in_rank_order(parts), parts.float().abs().sum(dim=0)

    def is_close(value: Tensor) -> bool:
        return value.dtype == right.dtype and bool(((value - right).abs() <= CLOSE * size).all())

    def only_bits_differ(outcome: Outcome) -> bool:
        return all(map(is_close, outcome.returned)) and any(
            not torch.equal(value, right) for value in outcome.returned
        )

    if len(parts) > 2:
        narrow = parts.dtype == torch.bfloat16
        yield "rounded-on-the-way" if narrow else "another-order", only_bits_differ
    yield "only-one-rank", right_on_one_rank_only(right, tolerance=0.0)


def _case(name: str, parts: Tensor) -> Case:
    ranks = len(parts)

    def arguments(rank: int) -> Mapping[str, Tensor]:
        return {"x": parts[rank].clone()}

    expected = on_every_rank(_in_rank_order(parts))
    return Case(
        name=name,
        ranks=ranks,
        arguments=arguments,
        expected=expected,
        mistakes=(
            forbidden_collective(),
            went_round_the_comm(expected, lambda rank: parts[0].numel() if ranks == 1 else 0),
            circular_wait(),
            *mistakes(MESSAGES, _returned(parts), _shown(parts)),
        ),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    few = telling_parts(3, 5, seed)
    more = telling_parts(3, 16, seed + 1)
    return (
        _case("three ranks, 5 numbers each", few),
        _case("three ranks, the same 5 inside 16", _inside(few, more, 4)),
        _case("four ranks, 4 x 4 each", telling_parts(4, 16, seed + 2).view(4, 4, 4)),
        _case("three ranks, 9 in bfloat16", telling_parts(3, 9, seed + 3, torch.bfloat16)),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    few = telling_parts(4, 13, seed)
    more = telling_parts(4, 31, seed + 1)
    return (
        _case("four ranks, 13 numbers each", few),
        _case("four ranks, the same 13 inside 31", _inside(few, more, 11)),
        _case("three ranks, 7 numbers each", telling_parts(3, 7, seed + 2)),
        _case("four ranks, 8 in bfloat16", telling_parts(4, 8, seed + 3, torch.bfloat16)),
        _case("two ranks, a number without a dim", telling_parts(2, 1, seed + 4).view(2)),
        _case("one rank, 3 numbers", telling_parts(1, 3, seed + 5)),
    )


def _inside(few: Tensor, more: Tensor, start: int) -> Tensor:
    """`more`, with `few` in the place of its numbers from `start` on."""
    stop = start + few.shape[1]
    return torch.cat((more[:, :start], few, more[:, stop:]), dim=1)


EXERCISE = Exercise(
    name="fixed_order_sum",
    chapter="01_collectives",
    title="A sum that adds in rank order",
    function="fixed_order_sum",
    parameters=("comm", "x"),
    points=10,
    visible=_visible,
    hidden=_hidden,
    tolerance=0.0,
)
