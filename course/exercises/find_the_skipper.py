"""Exercise: from every rank's list of calls, find the rank that left one out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from course.grading.exercise import Case, Exercise, Mistake, Outcome

Call = tuple[str, tuple[int, ...]]

_CALLS: tuple[Call, ...] = (
    ("all_reduce", (1, 576)),
    ("all_reduce", (4, 576)),
    ("all_gather", (1, 2)),
    ("all_gather", (4, 2)),
    ("reduce_scatter", (8, 576)),
)

Wanted = Callable[[Sequence[Call], int], bool]
"""Whether a list of calls suits a case in which the call at this index is skipped."""


def _middle(calls: Sequence[Call], skipped: int) -> bool:
    """All miss it: comparing names only, the call's first and last occurrence, the list's end."""
    by_name, last = _first_difference(calls, skipped, names_only=True), _last_index(calls, skipped)
    return calls[skipped] in calls[:skipped] and skipped + 1 < by_name < last < len(calls) - 1


def _seen_by_name(calls: Sequence[Call], skipped: int) -> bool:
    """Comparing names only finds it too."""
    return _first_difference(calls, skipped, names_only=True) == skipped


def _last_index(calls: Sequence[Call], skipped: int) -> int:
    """Where the skipped call occurs last."""
    return max(index for index, call in enumerate(calls) if call == calls[skipped])


def _first_difference(calls: Sequence[Call], skipped: int, *, names_only: bool = False) -> int:
    """Where the list without the call at `skipped` parts from the whole list."""
    rest = [*calls[:skipped], *calls[skipped + 1 :]]
    for index, (whole, cut) in enumerate(zip(calls, rest, strict=False)):
        if (whole[0] != cut[0]) if names_only else (whole != cut):
            return index
    return len(rest)


def _list_of_calls(length: int, skipped: int, seed: int, wanted: Wanted) -> list[Call]:
    """Calls of which no two neighbours are equal, drawn until `wanted` holds."""
    random = Random(seed)
    while True:
        calls: list[Call] = []
        while len(calls) < length:
            calls.append(random.choice([call for call in _CALLS if call not in calls[-1:]]))
        if wanted(calls, skipped):
            return calls


def _case(
    name: str,
    ranks: int,
    length: int,
    skipper: int,
    skipped: int,
    seed: int,
    wanted: Wanted = _seen_by_name,
) -> Case:
    whole = _list_of_calls(length, skipped, seed, wanted)

    def arguments(rank: int) -> Mapping[str, list[list[Call]]]:
        calls = [list(whole) for _ in range(ranks)]
        del calls[skipper][skipped]
        return {"calls": calls}

    def expected(rank: int) -> tuple[int, int]:
        return skipper, skipped

    return Case(name, 0, arguments, expected, _mistakes(whole, ranks, skipper, skipped))


def _mistakes(whole: Sequence[Call], ranks: int, skipper: int, skipped: int) -> tuple[Mistake, ...]:
    def blames_another(outcome: Outcome) -> bool:
        return any(
            outcome.returned == ((rank, skipped),) for rank in range(ranks) if rank != skipper
        )

    return (
        Mistake(
            "blames-another-rank",
            "The place is right, but the rank you name made every call. A list that differs from "
            "rank 0's, or from its neighbour's, need not be the one that lacks a call.",
            shows=blames_another,
        ),
        Mistake(
            "counted-from-one",
            "The index is one too high: indices count from 0.",
            returns=lambda _: (skipper, skipped + 1),
        ),
        Mistake(
            "swapped",
            "The two numbers are in the wrong order: the rank comes first.",
            returns=lambda _: (skipped, skipper),
        ),
        Mistake(
            "compares-names-only",
            "Two calls with the same name and different shapes were taken for the same call.",
            returns=lambda _: (skipper, _first_difference(whole, skipped, names_only=True)),
        ),
        Mistake(
            "another-occurrence",
            "The call that is missing is the right one, but the same call also occurs earlier in "
            "the list, and that earlier place is what you return.",
            returns=lambda _: (skipper, whole.index(whole[skipped])),
        ),
        Mistake(
            "another-occurrence",
            "The call that is missing is the right one, but the same call also occurs later in "
            "the list, and that later place is what you return.",
            returns=lambda _: (skipper, _last_index(whole, skipped)),
        ),
        Mistake(
            "end-of-the-list",
            "You return where the short list ends. The call may be missing anywhere: what follows "
            "it has moved up by one place.",
            returns=lambda _: (skipper, len(whole) - 1),
        ),
        Mistake(
            "last-call-unseen",
            "Nothing was found. The last call is the one missing, so the short list agrees with "
            "the others as far as it goes, and a comparison that ends with it sees nothing.",
            returns=lambda _: _none_if(skipped == len(whole) - 1),
        ),
    )


def _none_if(possible: bool) -> None:
    if not possible:
        raise ValueError("this mistake shows only where the last call is missing")


def visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("three ranks, 13 calls", 3, 13, 1, 3, seed, _middle),
        _case("four ranks, 15 calls", 4, 15, 0, 5, seed + 1, _middle),
        _case("four ranks, 6 calls, the last one skipped", 4, 6, 2, 5, seed + 2),
    )


def hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case("five ranks, 20 calls", 5, 20, 4, 11, seed, _middle),
        _case("two ranks, 10 calls", 2, 10, 0, 3, seed + 1, _middle),
        _case("three ranks, the first call skipped", 3, 7, 2, 0, seed + 2),
        _case("three ranks, one call", 3, 1, 1, 0, seed + 3),
        _case("64 ranks, 40 calls", 64, 40, 37, 22, seed + 4, _middle),
    )


EXERCISE = Exercise(
    name="find_the_skipper",
    chapter="00_start_here",
    title="Find the rank that skipped a collective",
    function="find_skipper",
    parameters=("calls",),
    points=10,
    visible=visible,
    hidden=hidden,
)
