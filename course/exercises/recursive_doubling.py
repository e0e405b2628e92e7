"""Exercise: an all-reduce in which the ranks meet in pairs, and what to do with the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from course.exercises.message_signs import (
    circular_wait,
    forbidden_collective,
    is_right,
    messages_sent,
    raised,
    went_round_the_comm,
)
from course.exercises.outcome_signs import right_on_one_rank_only
from course.exercises.summands import summands
from course.exercises.tensor_cases import Returns, mistakes
from course.grading.exercise import Case, Exercise, Outcome

MESSAGES = {
    "no-such-partner": "A message names a rank that does not exist. With a number of ranks that "
    "is no power of two, the rule for partners leads out of the group.",
    "result-not-sent-back": "The sum is whole on the ranks that met in pairs. A rank that handed "
    "its part over before the first round must hear the result after the last.",
    "rest-not-folded": "The number of ranks is no power of two, and some rank's part has not come "
    "to everybody. Ranks for whom the pairs do not come out even must bring their part in before "
    "the first round.",
    "missing-reduce": "Each rank returns what it brought: nothing from another rank was added to "
    "it.",
    "mean-instead-of-sum": "The result is divided by the number of ranks: a mean, not a sum.",
    "wrong-partner": "A rank met one whose sum holds parts that it had already, so these count "
    "twice and others are missing. In each round the partner must come from ranks not heard of "
    "yet, directly or through others.",
    "counted-twice": "A part is in the sum more than once: a rank whose part had been handed over "
    "took part in the rounds all the same, or two sums were added that hold a part in common.",
    "sum-not-passed-on": "Each rank has its own part and one more for each round. In every round "
    "it sent what it brought, and not what it had heard by then.",
    "round-missing": "The rounds stopped before every part had come to every rank. The parts that "
    "a rank's sum holds double with each round.",
    "only-one-rank": "The sum is whole on one rank only. In an all-reduce every rank ends with it.",
    "other-messages": "The sum is right, and the ranks did not send as many messages as in "
    "recursive doubling. A chain, a ring, a star and a tree end with the same sum, and take other "
    "numbers of messages and of steps.",
}


def _power_below(ranks: int) -> int:
    """The largest power of two that is at most `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def messages_of_doubling(ranks: int) -> list[int]:
    """How many messages each rank sends, rising: one a round, and one for each pair of a fold."""
    power = _power_below(ranks)
    rest, rounds = ranks - power, power.bit_length() - 1
    return sorted([1] * rest + [rounds + 1] * rest + [rounds] * (power - rest))


def _returned(parts: Tensor) -> Iterator[tuple[str, Returns]]:
    if len(parts) > 1:
        yield "missing-reduce", parts.unbind().__getitem__
        yield "mean-instead-of-sum", lambda rank: parts.sum(dim=0) / len(parts)


def _shown(parts: Tensor) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    """`parts` `[ranks, ...]`: what each rank brings."""
    ranks, total = len(parts), parts.sum(dim=0)
    if ranks == 1:
        return
    power = _power_below(ranks)
    has_rest = power < ranks
    rounds = power.bit_length() - 1

    def counts(outcome: Outcome) -> list[tuple[int, ...]]:
        """How often each part is in a rank's result, for each rank whose result is such a sum."""
        found = [summands(value, parts, most=ranks) for value in outcome.returned]
        return [times for times in found if times is not None]

    def not_sent_back(outcome: Outcome) -> bool:
        """As many ranks as fit into no pair are wrong, and none of them has heard a thing."""
        wrong = [value for value in outcome.returned if not _equal(value, total)]
        heard = [times for times in counts(outcome) if sum(times) > 1 and set(times) != {1}]
        return has_rest and len(wrong) == ranks - power and not heard

    def nobody_answers(outcome: Outcome) -> bool:
        """As many ranks as fit into no pair wait for a message, and all others are done."""
        states = [] if outcome.error is None else [r.state for r in outcome.error.reports]
        waiting = ranks - power
        return has_rest and sorted(states) == ["returned"] * power + ["waiting"] * waiting

    def sums(
        wanted: Callable[[tuple[int, ...]], bool], of: Callable[[Iterable[bool]], bool]
    ) -> Callable[[Outcome], bool]:
        """Whether every rank's result is a sum of parts, and any or all (`of`) are as wanted."""
        return lambda outcome: (
            len(made := counts(outcome)) == ranks and of(wanted(times) for times in made)
        )

    yield "no-such-partner", lambda outcome: has_rest and _names_no_rank(outcome)
    yield "result-not-sent-back", nobody_answers
    yield "only-one-rank", lambda outcome: ranks == power and right_on_one_rank_only(total)(outcome)
    yield "result-not-sent-back", not_sent_back
    if has_rest:
        yield "counted-twice", sums(lambda times: max(times) > 1, any)
        yield "rest-not-folded", sums(lambda times: 0 in times, any)
    else:
        yield "wrong-partner", sums(lambda times: 0 in times and max(times) > 1, all)
        yield "counted-twice", sums(lambda times: max(times) > 1, any)
        yield "sum-not-passed-on", sums(lambda times: sum(times) == rounds + 1 < ranks, all)
        yield "round-missing", sums(lambda times: sum(times) < ranks, all)
    yield (
        "other-messages",
        lambda outcome: (
            total.numel() > 0
            and is_right(outcome, lambda rank: total)
            and sorted(map(messages_sent, outcome.traces)) != messages_of_doubling(ranks)
        ),
    )


def _equal(value: Any, total: Tensor) -> bool:
    return isinstance(value, Tensor) and torch.equal(value, total)


def _names_no_rank(outcome: Outcome) -> bool:
    """A rank raised because of the rank that it gave to send, recv or send_recv."""
    return any(
        error.type_name == "ValueError" and " names rank " in error.text
        for error in raised(outcome)
    )


def _case(name: str, shape: tuple[int, ...], ranks: int, seed: int) -> Case:
    random = torch.Generator().manual_seed(seed)
    parts = torch.randint(1, 2000, (ranks, *shape), generator=random).double()

    def arguments(rank: int) -> Mapping[str, Tensor]:
        return {"x": parts[rank].clone()}

    def expected(rank: int) -> Tensor:
        return parts.sum(dim=0)

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
    return (
        _case("one rank, 3 numbers", (3,), 1, seed),
        _case("two ranks, 5 numbers each", (5,), 2, seed + 1),
        _case("four ranks, 2 x 3 each", (2, 3), 4, seed + 2),
        _case("three ranks, 4 numbers each", (4,), 3, seed + 3),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case("four ranks, 2 numbers each", (2,), 4, seed),
        _case("three ranks, 2 x 1 x 2 each", (2, 1, 2), 3, seed + 1),
        _case("three ranks, a single number without a dim", (), 3, seed + 2),
        _case("two ranks, no number at all", (0,), 2, seed + 3),
    )


EXERCISE = Exercise(
    name="recursive_doubling",
    chapter="01_collectives",
    title="Recursive doubling, with a fold for the rest",
    function="recursive_doubling",
    parameters=("comm", "x"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
